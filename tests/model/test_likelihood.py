"""The four estimators of appendix H and plain NLL, against what they must give (method §7.3)."""

import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from model.config import BackboneConfig, LanguageModelConfig
from model.diffusion import Batch
from model.estimators import Estimator
from model.language_model import LanguageModel
from model.likelihood import estimate, token_nats

VOCABULARY, LENGTH, BLOCK = 23, 24, 6
BOS, EOS, PAD, MASK, END_OF_CHUNK = 18, 19, 20, 21, 22
DIFFUSION: tuple[Estimator, ...] = ("fixed_rate_0.5", "grid_9_rates", "mdlm_elbo", "per_block_elbo")


def network(attention: str = "block_causal") -> LanguageModel:
    backbone = BackboneConfig.model_validate(
        {
            "vocab_size": VOCABULARY, "width": 8, "n_layers": 1, "n_heads": 2, "n_kv_heads": 1,
            "mlp_width": 12, "max_length": LENGTH, "block": BLOCK, "attention": attention,
        }
    )  # fmt: skip
    config = LanguageModelConfig(
        backbone=backbone, bottleneck=None, bos_id=BOS, eos_id=EOS, pad_id=PAD, mask_id=MASK,
        end_of_chunk_id=END_OF_CHUNK,
    )  # fmt: skip
    return LanguageModel(config).eval()


def uniform_predictor() -> LanguageModel:
    lm = network()
    with torch.no_grad():
        lm.embedding.weight.zero_()
    return lm


def batch(ids_BT: Tensor, first: int = 0) -> Batch:
    return Batch(
        ids_BT,
        torch.full_like(ids_BT, -1),
        torch.zeros(0, 3, dtype=torch.long),
        torch.zeros(0, dtype=torch.bool),
        torch.arange(first, first + len(ids_BT)),
    )


def batches(n: int) -> Iterator[Batch]:
    generator = torch.Generator().manual_seed(0)
    for index in range(n):
        yield batch(torch.randint(0, BOS, (4, LENGTH), generator=generator), 4 * index)


@pytest.mark.parametrize("estimator", ["fixed_rate_0.5", "grid_9_rates"])
def test_a_uniform_predictor_pays_the_log_of_the_vocabulary(estimator: Estimator):
    found = estimate(uniform_predictor(), batches(3), estimator, seed=0)
    assert found.nats_per_token == pytest.approx(math.log(VOCABULARY))
    assert found.standard_error_nats == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("estimator", ["mdlm_elbo", "per_block_elbo"])
def test_the_bounds_find_it_within_their_standard_error(estimator: Estimator):
    found = estimate(uniform_predictor(), batches(60), estimator, seed=0, samples=2)
    assert found.standard_error_nats < 0.2
    assert abs(found.nats_per_token - math.log(VOCABULARY)) < 2 * found.standard_error_nats


def test_one_rate_a_block_varies_less_than_one_rate_a_batch(monkeypatch):
    def harder_the_more_is_masked(
        lm: LanguageModel, ids_BT: Tensor, target_BT: Tensor, asked_BT: Tensor
    ) -> Tensor:
        share_BN1 = asked_BT.double().unflatten(1, (-1, BLOCK)).mean(dim=2, keepdim=True)
        return (9.0 * share_BN1).expand(-1, -1, BLOCK).flatten(1) * asked_BT

    monkeypatch.setattr("model.likelihood._cross_entropy", harder_the_more_is_masked)
    errors = [
        estimate(network(), batches(60), estimator, seed=1).standard_error_nats
        for estimator in ("per_block_elbo", "mdlm_elbo")
    ]
    assert errors[0] < errors[1] / 2


def test_the_grid_is_the_mean_of_its_nine_rates():
    lm, only = network(), batch(torch.randint(0, BOS, (3, LENGTH)))
    ratios = []
    for rate in range(1, 10):
        found = token_nats(lm, only, "grid_9_rates", seed=0, sample=0, rate=rate / 10)
        ratios.append(float(found.nats_BT.sum() / found.counted_BT.sum()))
    assert estimate(lm, [only], "grid_9_rates", seed=0).nats_per_token == pytest.approx(
        sum(ratios) / 9
    )


@pytest.mark.parametrize("estimator", DIFFUSION)
def test_padding_and_bos_are_neither_masked_nor_counted(estimator: Estimator):
    ids_BT = torch.randint(0, BOS, (2, LENGTH))
    ids_BT[:, 0], ids_BT[1, 15:] = BOS, PAD
    found = token_nats(network(), batch(ids_BT), estimator, seed=0, sample=0)
    outside_BT = (ids_BT == BOS) | (ids_BT == PAD)
    assert not found.counted_BT[outside_BT].any()
    assert not found.nats_BT[outside_BT].any()


def test_masks_depend_on_seed_sample_and_sequence_alone():
    lm, ids_BT = network(), torch.randint(0, BOS, (3, LENGTH))
    together = token_nats(lm, batch(ids_BT), "per_block_elbo", seed=5, sample=2)
    alone = token_nats(lm, batch(ids_BT[1:2], first=1), "per_block_elbo", seed=5, sample=2)
    torch.testing.assert_close(together.nats_BT[1:2], alone.nats_BT)
    other = token_nats(lm, batch(ids_BT), "per_block_elbo", seed=5, sample=3)
    assert not torch.equal(together.nats_BT, other.nats_BT)


def test_next_token_nats_are_those_of_the_shifted_targets():
    lm, ids_BT = network("causal"), torch.randint(0, BOS, (2, LENGTH))
    found = token_nats(lm, batch(ids_BT), "autoregressive", seed=0, sample=0)
    wanted_BT = torch.nn.functional.cross_entropy(
        lm(ids_BT)[:, :-1].flatten(0, 1), ids_BT[:, 1:].flatten(), reduction="none"
    ).unflatten(0, (2, LENGTH - 1))
    torch.testing.assert_close(found.nats_BT[:, :-1].float(), wanted_BT)
    assert found.counted_BT.sum() == 2 * (LENGTH - 1)


def test_padding_alone_has_no_loss():
    only = batch(torch.full((2, LENGTH), PAD))
    with pytest.raises(ValueError, match="padding alone"):
        estimate(network(), [only], "fixed_rate_0.5", seed=0)
