from model.optim import adamw, set_learning_rate
from model.train_config import OptimConfig
from tests.model import tiny


def test_what_is_looked_up_never_decays():
    network = tiny.lm()
    decayed, spared = adamw(network, OptimConfig(peak_lr=1e-3)).param_groups
    assert (decayed["weight_decay"], spared["weight_decay"]) == (0.1, 0.0)
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    of_decayed = {names[id(parameter)].split(".")[-1] for parameter in decayed["params"]}
    inside = {names[id(parameter)] for parameter in decayed["params"]}
    assert of_decayed == {"weight", "predictor_KD", "predictor_RD", "predictor_UR"}
    assert "embedding.weight" not in inside
    assert not any("norm" in name for name in inside)
    assert len(decayed["params"]) + len(spared["params"]) == len(names)


def test_every_group_follows_the_schedule():
    optimizer = adamw(tiny.lm(), OptimConfig(peak_lr=1e-3))
    set_learning_rate(optimizer, 0.5)
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.5]
