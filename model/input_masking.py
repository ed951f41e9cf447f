"""What masking inputs really does to a logit: the test of what attribution says (paper §6.1.1).

    deletion   ℓ(x) − ℓ(x without the k strongest inputs)        a good order loses much, early
    insertion  ℓ(the k strongest inputs alone) − ℓ(all [MASK])   a good order regains much, early
    agreement  −A_t foretells  ℓ(x without t) − ℓ(x)             rank correlation over the inputs

The strongest inputs are those that spoke most for the token, signs kept. Orders drawn at random
say what any input would do. Steering, and what else was masked, stay as the commit saw them.

Shape suffixes used in this file:
    B target, a commit asked for   T position   K count of inputs   O order   M masked set
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from model.language_model import LanguageModel
from model.replay import Replay, logits, replays
from model.trace import Trace


@dataclass(frozen=True)
class Curves:
    """Logits lost and regained with the first inputs of an order, by how many they are."""

    counts: tuple[int, ...]
    deletion_BK: Tensor
    deletion_random_BK: Tensor
    """Mean over the random orders."""

    insertion_BK: Tensor
    insertion_random_BK: Tensor


def curves(
    lm: LanguageModel, trace: Trace, commits: Sequence[int], weight_BT: Tensor, *,
    counts: Sequence[int], n_orders: int, seed: Sequence[int], at_once: int = 32,
) -> Curves:  # fmt: skip
    """Curves of some commits, their inputs in the order of `weight`; rows as the commits given.

    Where a snapshot has fewer inputs than a count, all of them are taken.
    """
    row_of = {commit: row for row, commit in enumerate(commits)}
    found: list[Tensor] = [torch.empty(0)] * len(commits)
    for commit, one in _targets(lm, trace, commits):
        random = np.random.default_rng([*seed, commit])
        drawn_OT = [random.permutation(len(one.inputs_T)) for _ in range(n_orders)]
        order_OT = np.stack([weight_BT[row_of[commit], : len(one.inputs_T)].numpy(), *drawn_OT])
        found[row_of[commit]] = _curve(lm, one, torch.from_numpy(order_OT), counts, at_once)
    curve_B2OK = torch.stack(found)
    first_B2K, others_B2K = curve_B2OK[:, :, 0], curve_B2OK[:, :, 1:].mean(2)
    return Curves(
        tuple(counts), first_B2K[:, 0], others_B2K[:, 0], first_B2K[:, 1], others_B2K[:, 1]
    )


@dataclass(frozen=True)
class _Target:
    """One commit of a replay."""

    replay: Replay
    snapshot: int
    place: int

    @property
    def inputs_T(self) -> Tensor:
        return self.replay.inputs_ST[self.snapshot]

    def logits(self, lm: LanguageModel, kept_MT: Tensor, at_once: int) -> Tensor:
        """Its logit (M) where these inputs alone are left."""
        rows_M = torch.full((len(kept_MT),), self.snapshot)
        return logits(lm, self.replay, rows_M, kept_MT, at_once)[:, self.place]


def _targets(
    lm: LanguageModel, trace: Trace, commits: Sequence[int]
) -> Iterator[tuple[int, _Target]]:
    for replay in replays(lm, trace, commits):
        for snapshot, place in np.ndindex(*replay.commit_SP.shape):
            yield int(replay.commit_SP[snapshot, place]), _Target(replay, snapshot, place)


def _curve(
    lm: LanguageModel, target: _Target, score_OT: Tensor, counts: Sequence[int], at_once: int
) -> Tensor:
    """Deletion and insertion (2, O, K) along orders of falling score."""
    inputs_T = target.inputs_T
    order_OT = score_OT.double().masked_fill(~inputs_T, -torch.inf).argsort(-1, descending=True)
    rank_OT = order_OT.argsort(-1)
    first_OKT = rank_OT[:, None] < torch.tensor(counts)[:, None]
    kept_MT = torch.cat(
        [
            torch.stack([inputs_T, torch.zeros_like(inputs_T)]),
            (inputs_T & ~first_OKT).flatten(0, 1),
            (inputs_T & first_OKT).flatten(0, 1),
        ]
    )
    logit_M = target.logits(lm, kept_MT, at_once)
    without_OK, alone_OK = logit_M[2:].view(2, len(score_OT), len(counts))
    return torch.stack([logit_M[0] - without_OK, alone_OK - logit_M[1]])


def effects(lm: LanguageModel, trace: Trace, commits: Sequence[int], at_once: int = 32) -> Tensor:
    """What masking each input alone does to each target's logit (B, T); NaN where there is no
    input to mask."""
    row_of = {commit: row for row, commit in enumerate(commits)}
    effect_BT = torch.full((len(commits), len(trace.ids_T)), torch.nan)
    for commit, target in _targets(lm, trace, commits):
        inputs_T = target.inputs_T
        at_M = inputs_T.nonzero().squeeze(-1)
        kept_MT = inputs_T & (torch.arange(len(inputs_T)) != at_M[:, None])
        logit_M = target.logits(lm, torch.cat([inputs_T[None], kept_MT]), at_once)
        effect_BT[row_of[commit], at_M] = logit_M[1:] - logit_M[0]
    return effect_BT


@dataclass(frozen=True)
class Foretold:
    """How well −A_t foretells what masking input t does, one figure a target."""

    rank_B: Tensor
    """Spearman's correlation over the inputs; NaN with fewer than two of them."""

    error_B: Tensor
    """Mean |foretold − observed|, in logits."""

    observed_B: Tensor
    """Mean |observed|, in logits: what the error is to be compared with."""

    product_B: Tensor
    """Σ foretold · observed and Σ foretold²: their ratio is the slope of calibration, 1 where what
    comes is as large as foretold."""

    square_B: Tensor


def foretold(weight_BT: Tensor, effect_BT: Tensor) -> Foretold:
    """Compare weights with the effects of masking, over each target's inputs."""
    columns: list[list[Tensor]] = []
    for weight_T, effect_T in zip(weight_BT.double(), effect_BT.double(), strict=True):
        here_T = ~effect_T.isnan()
        said_M, seen_M = -weight_T[here_T], effect_T[here_T]
        columns.append(
            [
                rank_correlation(said_M, seen_M), (said_M - seen_M).abs().mean(),
                seen_M.abs().mean(), (said_M * seen_M).sum(), said_M.square().sum(),
            ]
        )  # fmt: skip
    return Foretold(*(torch.stack(column) for column in zip(*columns, strict=True)))


def rank_correlation(one_M: Tensor, other_M: Tensor) -> Tensor:
    """Spearman's ρ, equal values sharing the mean of their ranks; NaN where one is constant."""
    both_2M = torch.stack([_ranks(one_M), _ranks(other_M)])
    centred_2M = both_2M - both_2M.mean(1, keepdim=True)
    product = centred_2M.prod(0).sum()
    return product / centred_2M.square().sum(1).prod().sqrt()


def _ranks(values_M: Tensor) -> Tensor:
    sorted_M = values_M.sort().values
    first_M = torch.searchsorted(sorted_M, values_M.contiguous())
    last_M = torch.searchsorted(sorted_M, values_M.contiguous(), right=True)
    return (first_M + last_M).double()
