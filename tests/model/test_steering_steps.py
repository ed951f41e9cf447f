"""Steering steps inside the objective and the loop (method §4.5, eq. 31-33)."""

from dataclasses import replace

import pytest
import torch

from model import forcing
from model.diffusion import fixed, question
from model.engine import PlainEngine
from model.forcing import Chances
from model.interleaving import Lifted, aim
from model.language_model import LanguageModel
from model.objective import Example, Objective, counts, weights
from model.terms import Term
from model.train import fit
from model.train_config import InterleavingConfig, ObjectiveConfig, OptimConfig
from tests.model import tiny

LIFTED = Lifted(torch.arange(tiny.KNOWN * 4).view(tiny.KNOWN, 4), torch.ones(tiny.KNOWN))
CONFIG = InterleavingConfig(phases=1, phase=1.0, warmup=0.0)
NOTHING = Chances()
OPTIM = OptimConfig(peak_lr=1e-2, warmup=0.1, decay=0.2)
EMBEDDING, PREDICTOR = "bottleneck.known.embedding_KD", "bottleneck.known.predictor_KD"


def steered(network, batch=None, chances=NOTHING):
    batch = tiny.batch(4) if batch is None else batch
    asked = question(batch, fixed(0.8), 0, 3, network.config)
    return Example(
        batch=batch,
        asked=asked,
        forcing=forcing.draw(batch, chances, seed=0, step=3),
        sparse=True,
        aim=aim(
            batch,
            asked,
            LIFTED,
            CONFIG,
            n_layers=network.config.backbone.n_layers,
            seed=0,
            step=3,
        ),
    )


def test_a_steering_step_has_three_terms_and_no_other():
    network, config = tiny.lm(), ObjectiveConfig()
    example = steered(network)
    sums_S, counts_S = Objective(network, config)(example), counts(example, network, config)
    trained = {term for term in Term if weights(config, counts_S)[term] > 0}
    assert trained == {Term.LANGUAGE, Term.RESPOND, Term.EXPRESS}
    assert counts_S[Term.RESPOND] == counts_S[Term.EXPRESS] == len(example.aim) > 0
    assert all(sums_S[term] > 0 for term in trained)


def test_every_other_step_has_neither_of_the_two():
    network, config = tiny.lm(), ObjectiveConfig()
    plain = replace(steered(network), aim=None)
    counts_S = counts(plain, network, config)
    assert counts_S[Term.RESPOND] == counts_S[Term.EXPRESS] == 0
    assert counts_S[Term.CONCEPT] > 0


def test_responding_teaches_the_predictor_and_never_moves_a_concept():
    network = tiny.lm()
    Objective(network, ObjectiveConfig())(steered(network))[Term.RESPOND].backward()
    gradients = {name: parameter.grad for name, parameter in network.named_parameters()}
    assert gradients[PREDICTOR].any()
    assert gradients["backbone.layers.0.mlp.c_fc.weight"].any()
    assert gradients[EMBEDDING] is None or not gradients[EMBEDDING].any()


@pytest.mark.parametrize(("residual_dropped", "reached"), [(0.0, False), (1.0, True)])
def test_expressing_moves_concepts_only_where_the_residual_is_dropped(residual_dropped, reached):
    network = tiny.lm()
    example = steered(network, chances=Chances(residual_dropped=residual_dropped))
    Objective(network, ObjectiveConfig())(example)[Term.EXPRESS].backward()
    assert bool(network.concepts.known.embedding_KD.grad.any()) is reached


def test_parts_of_a_batch_add_up_to_the_whole():
    network, config = tiny.lm(), ObjectiveConfig()
    objective, whole = Objective(network, config), tiny.batch(4)
    parts = [whole.part(slice(part, None, 2)) for part in range(2)]
    sums_S = objective(steered(network, whole))
    added_S = sum(objective(steered(network, part)) for part in parts)
    torch.testing.assert_close(added_S, sums_S, rtol=1e-4, atol=1e-4)


def test_a_network_in_low_precision_takes_the_same_steps():
    network, low = tiny.lm(n_layers=3), tiny.lm(n_layers=3).bfloat16()
    assert low.config.backbone.n_layers - steered(low).aim.first_layer > 1  # a layer reads it
    example = steered(network)
    exact_S = Objective(network, ObjectiveConfig())(example)
    found_S = Objective(low, ObjectiveConfig())(example).float()
    terms = [Term.LANGUAGE, Term.RESPOND, Term.EXPRESS]
    torch.testing.assert_close(found_S[terms], exact_S[terms], rtol=0.05, atol=0.05)


def test_steering_phases_teach_the_network_to_notice_and_to_say():
    noticed, said = {}, {}
    for phases in (None, CONFIG):
        network = fitted(tiny.training(60, interleaving=phases, optim=OPTIM, validations=1))
        with torch.no_grad():
            sums_S = Objective(network, ObjectiveConfig())(steered(network, tiny.batch(24)))
        noticed[phases], said[phases] = float(sums_S[Term.RESPOND]), float(sums_S[Term.EXPRESS])
    assert noticed[CONFIG] < 0.2 * noticed[None]
    assert said[CONFIG] < said[None]


def test_phases_without_lifted_words_are_refused():
    config = tiny.training(5, interleaving=CONFIG)
    engine = PlainEngine(LanguageModel(tiny.config()), config)
    with pytest.raises(ValueError, match="aim at the lifted words"):
        fit(engine, config, tiny.batch_at, [])


def fitted(config):
    engine = PlainEngine(LanguageModel(tiny.config(), seed=2), config)
    fit(engine, config, tiny.batch_at, [tiny.batch(6, seed=99)], lifted=LIFTED)
    return engine.finished()
