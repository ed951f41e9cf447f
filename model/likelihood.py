"""Held-out loss: four estimators for diffusion, one for AR (paper appendix H, method §7.3).

With CE(t) the mean cross-entropy of masked tokens when each is masked with rate t, the per-token
negative ELBO of masked diffusion is ∫₀¹ CE(t) dt. Every estimator is a sum of nats over a sum of
tokens, so that it can be added up by document, by domain, or over everything:

    fixed rate   Σ CE          / #masked            t = 0.5
    grid         the mean of nine fixed rates
    MDLM ELBO    Σ CE / t      / #maskable tokens   one t ~ U(0, 1) a batch
    per block    Σ CE / t_B    / #maskable tokens   one t_B ~ U(0, 1) a block

Noise is drawn by (seed, sample, sequence): checkpoints compared at one seed see the same masks.
BOS and padding are neither masked nor counted.

Shape suffixes used in this file:
    B batch   T position   D width   V vocabulary   N asked tokens, or sequences
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.diffusion import Batch, next_tokens
from model.draws import Purpose, uniforms
from model.estimators import FIXED_RATE, GRID_RATES, LOWEST_RATE, Estimator
from model.language_model import LanguageModel
from model.losses import cross_entropy

ROWS_AT_ONCE = 1024
"""Tokens whose logits are held at once."""


@dataclass(frozen=True)
class Estimate:
    """Nats per token, and how sure that is."""

    nats_per_token: float
    standard_error_nats: float
    n_tokens: int
    """Tokens in the denominator, over all samples and rates."""

    n_sequences: int
    samples: int
    """Independent draws of noise for each sequence and rate."""


@dataclass(frozen=True)
class TokenNats:
    """What each token of a batch adds: Σ nats / Σ counted is nats per token."""

    nats_BT: Tensor
    counted_BT: Tensor


def estimate(
    lm: LanguageModel,
    batches: Iterable[Batch],
    estimator: Estimator,
    seed: int,
    samples: int = 1,
) -> Estimate:
    """The loss by one estimator. Standard errors are over sequences (MDLM: over batches, which
    share their rate)."""
    rates = GRID_RATES if estimator == "grid_9_rates" else (FIXED_RATE,)
    nats: list[list[float]] = [[] for _ in rates]
    counts: list[list[float]] = [[] for _ in rates]
    n_sequences = 0
    for batch in batches:
        n_sequences += len(batch)
        for index, rate in enumerate(rates):
            drawn = [token_nats(lm, batch, estimator, seed, draw, rate) for draw in range(samples)]
            nats_B = torch.stack([one.nats_BT.sum(dim=1) for one in drawn]).sum(dim=0)
            counted_B = torch.stack([one.counted_BT.sum(dim=1) for one in drawn]).sum(dim=0)
            if estimator == "mdlm_elbo":
                nats_B, counted_B = nats_B.sum(dim=0, keepdim=True), counted_B.sum(0, keepdim=True)
            nats[index] += nats_B.tolist()
            counts[index] += counted_B.tolist()
    ratios = [_ratio(np.array(n), np.array(c)) for n, c in zip(nats, counts, strict=True)]
    # The nine rates of the grid see the same sequences: their influences add before squaring.
    influence_N = np.mean([ratio.influence_N for ratio in ratios], axis=0)
    n_units = len(influence_N)
    spread = np.sqrt(np.sum(influence_N**2) * n_units / max(1, n_units - 1))
    return Estimate(
        nats_per_token=float(np.mean([ratio.value for ratio in ratios])),
        standard_error_nats=float(spread),
        n_tokens=round(sum(sum(one) for one in counts)),
        n_sequences=n_sequences,
        samples=samples,
    )


@torch.no_grad()
def token_nats(
    lm: LanguageModel,
    batch: Batch,
    estimator: Estimator,
    seed: int,
    sample: int,
    rate: float = FIXED_RATE,
) -> TokenNats:
    """One batch by one estimator and one draw of noise; `rate` is that of the fixed-rate ones."""
    if estimator == "autoregressive":
        asked = next_tokens(batch, lm.config)
        nats_BT = _cross_entropy(lm, asked.noisy_BT, asked.target_BT, asked.masked_BT)
        return TokenNats(nats_BT, asked.masked_BT.double())

    rate_BT = _rates(lm, batch, estimator, seed, sample, rate)
    maskable_BT = maskable(lm, batch)
    score_BT = uniforms(
        batch.sample_ids_B, batch.ids_BT.shape[1], seed=seed, step=sample, purpose=Purpose.MASK
    )
    masked_BT = (score_BT < rate_BT) & maskable_BT
    noisy_BT = batch.ids_BT.masked_fill(masked_BT, lm.config.mask_id)
    nats_BT = _cross_entropy(lm, noisy_BT, batch.ids_BT, masked_BT)
    if estimator in ("mdlm_elbo", "per_block_elbo"):
        return TokenNats(nats_BT / rate_BT.double(), maskable_BT.double())
    return TokenNats(nats_BT, masked_BT.double())


def maskable(lm: LanguageModel, batch: Batch) -> Tensor:
    """Tokens that carry text or structure: all but BOS and padding."""
    return (batch.ids_BT != lm.config.bos_id) & (batch.ids_BT != lm.config.pad_id)


def target_nats(lm: LanguageModel, hidden_ND: Tensor, target_N: Tensor) -> Tensor:
    """Cross-entropy of each target from its hidden state, a few rows of logits at a time."""
    pieces = [
        cross_entropy(lm, lm.composed(hidden_ND[rows]), target_N[rows])
        for rows in row_slices(len(target_N))
    ]
    return torch.cat(pieces) if pieces else hidden_ND.new_zeros(0)


def row_slices(n_rows: int) -> list[slice]:
    """Rows in groups whose logits fit in memory."""
    return [slice(start, start + ROWS_AT_ONCE) for start in range(0, n_rows, ROWS_AT_ONCE)]


def _rates(
    lm: LanguageModel, batch: Batch, estimator: Estimator, seed: int, sample: int, rate: float
) -> Tensor:
    length, block = batch.ids_BT.shape[1], lm.config.backbone.block
    n_blocks = -(-length // block)
    if estimator in ("fixed_rate_0.5", "grid_9_rates"):
        return torch.full(batch.ids_BT.shape, rate)
    whose_B = batch.sample_ids_B[:1] if estimator == "mdlm_elbo" else batch.sample_ids_B
    n_rates = 1 if estimator == "mdlm_elbo" else n_blocks
    uniform_BN = uniforms(whose_B, n_rates, seed=seed, step=sample, purpose=Purpose.RATE)
    rate_BN = (LOWEST_RATE + (1 - LOWEST_RATE) * uniform_BN).expand(len(batch), n_blocks)
    return rate_BN.repeat_interleave(block, dim=1)[:, :length]


def _cross_entropy(
    lm: LanguageModel, ids_BT: Tensor, target_BT: Tensor, asked_BT: Tensor
) -> Tensor:
    """Nats at the positions asked for, zero elsewhere; float64."""
    state_ND = lm.hidden(ids_BT)[asked_BT]
    nats_BT = torch.zeros(ids_BT.shape, dtype=torch.float64)
    nats_BT[asked_BT] = target_nats(lm, state_ND, target_BT[asked_BT]).double()
    return nats_BT


@dataclass(frozen=True)
class _Ratio:
    value: float
    influence_N: NDArray[np.float64]
    """How far each unit moves the ratio; their squares add up to its variance."""


def _ratio(nats_N: NDArray[np.float64], counted_N: NDArray[np.float64]) -> _Ratio:
    total = counted_N.sum()
    if total == 0:
        raise ValueError("no token to measure the loss of: the sequences hold padding alone")
    value = float(nats_N.sum() / total)
    return _Ratio(value, (nats_N - value * counted_N) / total)
