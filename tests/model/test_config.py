import pytest
from pydantic import ValidationError

from model.config import BackboneConfig, BottleneckConfig, LanguageModelConfig
from model.train_config import NoiseConfig, OptimConfig
from tests.model import tiny


def test_json_is_a_wire_format():
    config = tiny.config()
    assert LanguageModelConfig.model_validate_json(config.model_dump_json()) == config


def test_a_typo_is_refused_by_name():
    with pytest.raises(ValidationError, match="n_layer\n"):
        BackboneConfig.model_validate({**tiny.config().backbone.model_dump(), "n_layer": 3})


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({"n_heads": 3}, "try 1"),
        ({"n_heads": 16}, "even whole number"),
        ({"n_kv_heads": 3}, "try 1 or 4"),
    ],
)
def test_heads_that_do_not_fit_are_refused_with_advice(changes, advice):
    with pytest.raises(ValidationError, match=advice):
        BackboneConfig.model_validate({**tiny.config().backbone.model_dump(), **changes})


def test_more_concepts_kept_than_present_are_refused():
    with pytest.raises(ValidationError, match="top_k_unknown is 128 but there are only 9"):
        BottleneckConfig(n_known=40, n_unknown=9, rank=2)


def test_a_small_library_lowers_the_top_k_of_a_recipe():
    bottleneck = tiny.config(top_k=32, top_k_unknown=128).bottleneck
    assert bottleneck is not None
    assert (bottleneck.top_k, bottleneck.top_k_unknown) == (7, 21)


@pytest.mark.parametrize("family", ["ar", "cdlm", "ar_concept", "cdlm_concept"])
def test_a_network_knows_its_family(family):
    assert tiny.config(family).family == family


def test_special_ids_beyond_the_vocabulary_are_refused():
    with pytest.raises(ValidationError, match="must differ and lie below vocab_size 40"):
        LanguageModelConfig.model_validate({**tiny.config().model_dump(), "mask_id": 40})


def test_phases_longer_than_the_run_are_refused():
    with pytest.raises(ValidationError, match="exceed the whole run"):
        OptimConfig(peak_lr=1e-3, warmup=0.6, decay=0.5)


def test_noise_upside_down_is_refused():
    with pytest.raises(ValidationError, match="need low < high"):
        NoiseConfig(low=0.9, high=0.2)
