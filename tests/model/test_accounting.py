"""The paper's own numbers, from configs alone (method §11, conformance 14 and 15)."""

import subprocess
import sys

import pytest

from model import accounting
from model.accounting import Work
from model.config import BackboneConfig, BottleneckConfig, LanguageModelConfig
from tests.model import tiny

UNPADDED = LanguageModelConfig(
    backbone=BackboneConfig(
        vocab_size=100_281,
        width=4096,
        n_layers=32,
        n_heads=32,
        n_kv_heads=4,
        mlp_width=16_384,
        max_length=4096,
        block=64,
    ),
    bottleneck=BottleneckConfig(n_known=33_732, n_unknown=101_196, rank=256, known_bias=False),
    bos_id=100_278,
    eos_id=100_257,
    pad_id=100_277,
    mask_id=100_280,
    end_of_chunk_id=100_279,
)
STEERLING = accounting.padded(UNPADDED)
TOKENS = 1.35e12


def test_the_released_network_has_8391778304_parameters():
    counted = accounting.parameters(STEERLING)
    assert counted.total == 8_391_778_304
    assert counted.backbone == 7_650_684_928


def test_padding_rounds_concepts_up_to_sixteen_and_touches_nothing_else():
    padded, plain = STEERLING.bottleneck, UNPADDED.bottleneck
    assert (padded.n_known, padded.n_unknown) == (33_744, 101_200)
    assert accounting.padded(STEERLING) == STEERLING
    more = accounting.parameters(STEERLING).total - accounting.parameters(UNPADDED).total
    assert more == 2 * 12 * 4096 + 2 * 4 * 256
    assert plain.model_dump() | {"n_known": 33_744, "n_unknown": 101_200} == padded.model_dump()


def test_its_training_took_the_published_flops():
    counted = accounting.training_flops_per_token(STEERLING, 4096) * TOKENS
    left_out = accounting.training_flops_per_token(STEERLING, 4096, unknown_embeddings="left_out")
    assert counted == pytest.approx(7.667e22, rel=1e-3)
    assert left_out * TOKENS == pytest.approx(7.645e22, rel=1e-3)


def test_kept_concepts_cost_less_than_all():
    dense = accounting.training_flops_per_token(STEERLING, 4096)
    kept = accounting.training_flops_per_token(STEERLING, 4096, activations="top_k")
    assert dense - kept == 6 * (33_744 - 32) * 4096


def test_forward_by_parts_of_a_tiny_network_by_hand():
    # width 16, 2 layers, length 20, 40 tokens, 7 known and 21 unknown concepts, rank 3
    flops = accounting.forward_flops(tiny.config(), 20)
    assert flops.attention == 4 * 2 * 16 * 20
    assert flops.head == 2 * 40 * 16
    assert flops.known == 2 * (2 * 7 * 16)
    assert flops.unknown == 2 * (2 * 3 * (21 + 16))
    assert flops.backbone == 2 * accounting.parameters(tiny.config()).backbone


def test_convention_is_three_forwards_of_everything():
    forward = accounting.forward_flops(tiny.config(), 20)
    assert accounting.training_flops(tiny.config(), 20).total == 3 * forward.total


def test_asked_rows_save_head_and_concepts_alone():
    whole = accounting.training_flops(tiny.config(), 20)
    half = accounting.training_flops(tiny.config(), 20, Work(asked=0.5))
    assert (half.head, half.known, half.unknown) == (
        whole.head / 2, whole.known / 2, whole.unknown / 2,
    )  # fmt: skip
    assert (half.backbone, half.attention) == (whole.backbone, whole.attention)


def test_routing_saves_the_gradient_of_the_known_sum_where_the_residual_is_kept():
    whole = accounting.training_flops(STEERLING, 4096)
    routed = accounting.training_flops(STEERLING, 4096, Work(known_gradient=0.1))
    assert whole.known - routed.known == pytest.approx(0.9 * 4 * 33_744 * 4096)
    both = accounting.training_flops(STEERLING, 4096, Work(asked=0.5, known_gradient=0.1))
    assert whole.known / both.known > 2.8


def test_computing_layers_twice_costs_one_more_forward_of_the_backbone():
    once = accounting.training_flops(tiny.config(), 20)
    twice = accounting.training_flops(tiny.config(), 20, Work(backbone_forwards=2))
    forward = accounting.forward_flops(tiny.config(), 20)
    assert twice.total - once.total == forward.backbone + forward.attention


def test_an_hour_at_half_of_the_peak():
    assert accounting.device_hours(1.8e18, peak_flops=1e15, utilisation=0.5) == 1.0


@pytest.mark.parametrize("family", ["ar", "cdlm_concept"])
@pytest.mark.parametrize(
    "changes", [{}, {"known_bias": False}, {"rank": None}, {"tied": False, "qk_norm": False}]
)
def test_counts_equal_the_tensors_of_a_real_network(family, changes):
    network = tiny.lm(family, **changes)
    counted = accounting.parameters(network.config)
    assert counted.total == sum(parameter.numel() for parameter in network.parameters())
    assert counted.backbone == sum(p.numel() for p in network.backbone.parameters())


def test_counting_needs_no_torch():
    script = "import sys, model.memory; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
