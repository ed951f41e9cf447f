"""What DeepSpeed is told, and what cannot be told together."""

import pytest

from model.zero_config import ZeroConfig, settings
from tests.model import tiny


def told(stage: int = 2, *, low_precision: bool = False, **changes):
    zero = ZeroConfig(stage=stage, **changes)
    return settings(tiny.training(micro_batches=3), zero, world=2, low_precision=low_precision)


def test_a_batch_is_shared_over_ranks_and_micro_batches():
    found = told()
    assert found["train_micro_batch_size_per_gpu"] == 1
    assert found["gradient_accumulation_steps"] == 3
    assert found["bf16"] == {"enabled": False}


def test_a_batch_that_cannot_be_shared_is_refused_with_one_that_can():
    with pytest.raises(ValueError, match=r"batch_sequences is 6, which 4 ranks.*try 8"):
        settings(tiny.training(), ZeroConfig(), world=4, low_precision=False)


def test_gradients_are_summed_in_float32_also_where_the_network_is_not():
    found = told(low_precision=True)
    assert found["bf16"] == {"enabled": True}
    assert found["data_types"] == {"grad_accum_dtype": "fp32"}
    assert found["communication_data_type"] == "fp32"


def test_only_what_is_asked_for_is_offloaded():
    assert "offload_optimizer" not in told()["zero_optimization"]
    one = told(offload="optimizer")["zero_optimization"]
    assert one["offload_optimizer"] == {"device": "cpu"}
    assert "offload_param" not in one
    both = told(3, offload="optimizer_and_parameters")["zero_optimization"]
    assert both["offload_param"] == both["offload_optimizer"] == {"device": "cpu"}


def test_weights_that_are_not_split_cannot_be_offloaded():
    with pytest.raises(ValueError, match=r"at stage 2.*set stage to 3"):
        ZeroConfig(stage=2, offload="optimizer_and_parameters")
    with pytest.raises(ValueError, match=r"at stage 0.*set stage to 1"):
        ZeroConfig(stage=0, offload="optimizer")


def test_nothing_overlaps_where_gradients_are_reduced_at_the_end():
    with pytest.raises(ValueError, match=r"overlap is on at stage 0"):
        ZeroConfig(stage=0, overlap=True)


def test_bfloat16_needs_a_stage_that_sums_gradients_in_float32():
    with pytest.raises(ValueError, match=r"stage is 0 and dtype is bfloat16.*set stage to 1"):
        told(0, low_precision=True)


def test_layers_whose_weights_come_and_go_are_not_compiled():
    with pytest.raises(ValueError, match=r"compiled is true at stage 3.*set stage to 2"):
        settings(tiny.training(compiled=True), ZeroConfig(stage=3), world=2, low_precision=False)
