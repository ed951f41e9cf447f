"""Memory from configs alone: by hand on a tiny network, and against what torch really holds."""

import pytest
import torch

from model import accounting, memory
from model.memory import BFLOAT16, FLOAT32, MicroBatch
from model.optim import adamw
from model.train_config import OptimConfig
from model.zero_config import ZeroConfig
from tests.model import tiny

BATCH = MicroBatch(sequences=2, length=20)


def per_rank(stage, ranks=1, precision=BFLOAT16, **changes):
    zero = ZeroConfig(stage=stage, **changes)
    return memory.per_rank(tiny.config(), BATCH, zero, ranks=ranks, precision=precision)


@pytest.mark.parametrize(
    ("stage", "weights", "gradients", "optimiser"),
    [(0, 10_058, 20_116, 60_348), (1, 10_058, 20_116, 20_116), (2, 10_058, 6_706, 20_116),
     (3, 3_353, 6_706, 20_116)],
)  # fmt: skip
def test_states_of_5029_parameters_on_three_ranks_by_hand(stage, weights, gradients, optimiser):
    assert accounting.parameters(tiny.config()).total == 5_029
    held = per_rank(stage, ranks=3)
    assert (held.weights, held.gradients, held.optimiser) == (weights, gradients, optimiser)


def test_each_stage_holds_no_more_than_the_one_before():
    states = [per_rank(stage, ranks=4).states for stage in (0, 1, 2, 3)]
    assert states == sorted(states, reverse=True)
    assert len(set(states)) == 4


def test_offloaded_states_are_on_the_host_alone():
    moved, kept = per_rank(1, ranks=2, offload="optimizer"), per_rank(1, ranks=2)
    assert (moved.optimiser, moved.offloaded) == (0, kept.optimiser)
    assert moved.total == kept.total - kept.optimiser


def test_a_single_rank_needs_no_buffers():
    assert per_rank(2, ranks=1).buffers == 0
    assert per_rank(2, ranks=2, overlap=True).buffers == (2 * 4 + 2) * 5_029


def test_optimiser_bytes_are_torchs_own_and_a_float32_copy():
    lm = tiny.lm()
    optimizer = adamw(lm, OptimConfig(peak_lr=1e-3))
    sum(parameter.square().sum() for parameter in lm.parameters()).backward()
    optimizer.step()
    moments = sum(
        value.numel() * value.element_size()
        for state in optimizer.state.values()
        for name, value in state.items()
        if name != "step"
    )
    gradients = sum(p.grad.numel() * p.grad.element_size() for p in lm.parameters())
    weights = sum(p.numel() * p.element_size() for p in lm.parameters())
    held = per_rank(0, precision=FLOAT32)
    assert held.optimiser == moments + weights
    assert (held.gradients, held.weights) == (gradients, weights)


def kept_by_torch(n_layers, dtype):
    """Bytes that autograd keeps of one forward pass, without the weights."""
    # A causal network: its attention keeps no mask, as the tiled one on an accelerator.
    lm = tiny.lm("ar", width=64, mlp_width=192, n_layers=n_layers, max_length=64).to(dtype)
    weights = {parameter.untyped_storage().data_ptr() for parameter in lm.parameters()}
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = (storage.nbytes(), tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        lm.hidden(torch.randint(0, 32, (2, 64)))
    return sum(n_bytes for n_bytes, _ in kept.values())


@pytest.mark.parametrize(
    ("dtype", "precision"), [(torch.float32, FLOAT32), (torch.bfloat16, BFLOAT16)]
)
def test_activations_of_a_layer_are_what_autograd_keeps_within_4_percent(dtype, precision):
    backbone = tiny.config("ar", width=64, mlp_width=192, max_length=64).backbone
    counted = memory.activation_bytes_per_token(backbone, precision)
    kept = (kept_by_torch(4, dtype) - kept_by_torch(2, dtype)) / (2 * 2 * 64)
    assert counted == pytest.approx(kept, rel=0.04)


def test_checkpointing_keeps_the_inputs_of_layers_and_one_layer():
    layer = memory.activation_bytes_per_token(tiny.config().backbone, BFLOAT16)
    assert per_rank(1).activations == 40 * 2 * layer
    assert per_rank(1, activation_checkpointing=True).activations == 40 * (2 * 2 * 16 + layer)


def test_concepts_and_head_by_hand():
    # 40 tokens, 20 asked rows, 7 known and 21 unknown concepts, 4 + 6 kept, width 16, V 40
    held = per_rank(1)
    assert held.concepts == 20 * (20 * 16 + 8 * 10) + 4 * 1 * 7 + 8 * 20 * 21
    assert held.head == 8 * 20 * 40 + 4 * 20 * 16


def test_a_library_of_any_size_adds_a_tile_and_the_votes_of_chunks():
    few = memory.per_rank(tiny.config(), BATCH, ZeroConfig(), ranks=1)
    sizes = {"n_known": 7_000, "n_unknown": 21_000}
    bottleneck = tiny.config().bottleneck.model_copy(update=sizes)
    many = tiny.config().model_copy(update={"bottleneck": bottleneck})
    grown = memory.per_rank(many, BATCH, ZeroConfig(), ranks=1).concepts - few.concepts
    assert grown == 4 * (7_000 - 7) + 8 * 20 * (21_000 - 21)


def test_a_resumable_checkpoint_is_seven_times_the_weights():
    weights = memory.checkpoint_bytes(tiny.config(), "weights")
    assert memory.checkpoint_bytes(tiny.config(), "resumable") == 7 * weights == 14 * 5_029
