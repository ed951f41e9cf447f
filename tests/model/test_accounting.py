"""The paper's own numbers, from configs alone (method §11, conformance 14 and 15)."""

import subprocess
import sys

import pytest

from model import accounting
from model.config import BackboneConfig, BottleneckConfig, LanguageModelConfig
from tests.model import tiny

STEERLING = LanguageModelConfig(
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
    bottleneck=BottleneckConfig(n_known=33_744, n_unknown=101_200, rank=256, known_bias=False),
    bos_id=100_278,
    eos_id=100_257,
    pad_id=100_277,
    mask_id=100_280,
    end_of_chunk_id=100_279,
)
TOKENS = 1.35e12


def test_the_released_network_has_8391778304_parameters():
    counted = accounting.parameters(STEERLING)
    assert counted.total == 8_391_778_304
    assert counted.backbone == 7_650_684_928


def test_its_training_took_the_published_flops():
    counted = accounting.training_flops_per_token(STEERLING, 4096) * TOKENS
    left_out = accounting.training_flops_per_token(STEERLING, 4096, unknown_embeddings="left_out")
    assert counted == pytest.approx(7.667e22, rel=1e-3)
    assert left_out * TOKENS == pytest.approx(7.645e22, rel=1e-3)


def test_kept_concepts_cost_less_than_all():
    dense = accounting.training_flops_per_token(STEERLING, 4096)
    kept = accounting.training_flops_per_token(STEERLING, 4096, activations="top_k")
    assert dense - kept == 6 * (33_744 - 32) * 4096


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
    script = "import sys, model.accounting; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
