"""Shares of concepts in the logits of some tokens: of a chunk, or of a text (paper §6.1.2).

    of a token    C(c, y) / (Σ |C_known| + Σ |C_unknown| + |ε·W_y|)
    of a chunk    mean over all its tokens; one that did not keep the concept counts as 0

The residual has the same denominator, so that absolute shares of known concepts, unknown concepts
and residual add up to 1. With its sign a share can cancel and understate what it stands for; it is
told beside the absolute one, never instead.

Shape suffixes used in this file:
    N token   k concept kept   3 known, unknown, residual   C concept of some tokens
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from model.attribution import ConceptAttribution
from model.directions import ConceptRef
from model.intervals import Interval, ratio_interval

_TINY = 1e-8


@dataclass(frozen=True)
class PartShares:
    """Shares of the three parts of some tokens' logits, with intervals over the tokens."""

    known: Interval
    unknown: Interval
    residual: Interval
    """Magnitudes, which add up to 1."""

    known_signed: Interval
    unknown_signed: Interval
    residual_signed: Interval


@dataclass(frozen=True)
class ConceptShare:
    """What one concept did for some tokens, by the magnitude of all parts."""

    concept: ConceptRef
    share: float
    """Signed: above 0 it spoke for the tokens."""

    logits: float
    """Mean contribution to a token's logit."""

    n_tokens: int
    """Tokens that kept it."""


@dataclass(frozen=True)
class TokenShares:
    """Shares of known concepts, unknown concepts and residual of each token."""

    absolute_N3: Tensor
    """Concept by concept, so that those that speak against each other both count."""

    signed_N3: Tensor


def magnitude(found: ConceptAttribution) -> Tensor:
    """What every share of a token (N) is taken of, in logits."""
    return _magnitudes(found).sum(-1).clamp_min(_TINY)


def token_shares(found: ConceptAttribution) -> TokenShares:
    """Of every token, by its own magnitude."""
    total_N1 = magnitude(found)[:, None]
    signed_N3 = torch.stack([found.known_N, found.unknown_N, found.residual_N], dim=-1)
    return TokenShares(_magnitudes(found) / total_N1, signed_N3 / total_N1)


def part_shares(found: ConceptAttribution, rows: slice, *, draws: int, seed: int) -> PartShares:
    """Shares of the parts of some tokens: means over them."""
    shares = token_shares(found)
    columns_6N = torch.cat([shares.absolute_N3[rows], shares.signed_N3[rows]], dim=-1).T
    return PartShares(*(_mean(column_N, draws, seed) for column_N in columns_6N))


def strongest(found: ConceptAttribution, rows: slice) -> list[ConceptShare]:
    """All concepts that some tokens kept, known and unknown, by the size of their share."""
    total_N = magnitude(found)[rows]
    listed = [
        *_shares("known", found.known_ids_Nk[rows], found.known_Nk[rows], total_N),
        *_shares("unknown", found.unknown_ids_Nk[rows], found.unknown_Nk[rows], total_N),
    ]
    return sorted(listed, key=lambda one: (-abs(one.share), one.concept.kind, one.concept.id))


def _magnitudes(found: ConceptAttribution) -> Tensor:
    """Of the three parts (N, 3), in logits."""
    known_N, unknown_N = found.known_Nk.abs().sum(-1), found.unknown_Nk.abs().sum(-1)
    return torch.stack([known_N, unknown_N, found.residual_N.abs()], dim=-1)


def _shares(
    kind: Literal["known", "unknown"], ids_Nk: Tensor, weight_Nk: Tensor, total_N: Tensor
) -> list[ConceptShare]:
    ids_C, which_Nk = torch.unique(ids_Nk, return_inverse=True)
    which, n_tokens = which_Nk.flatten(), len(ids_Nk)
    share_C, logits_C = (
        torch.zeros(len(ids_C)).index_add_(0, which, value_Nk.flatten()) / n_tokens
        for value_Nk in (weight_Nk / total_N[:, None], weight_Nk)
    )
    count_C = which.bincount(minlength=len(ids_C))
    columns = (ids_C.tolist(), share_C.tolist(), logits_C.tolist(), count_C.tolist())
    return [
        ConceptShare(ConceptRef(kind, concept), share, logits, count)
        for concept, share, logits, count in zip(*columns, strict=True)
    ]


def _mean(values_N: Tensor, draws: int, seed: int) -> Interval:
    values = values_N.double().numpy()
    return ratio_interval(values, torch.ones(len(values)).double().numpy(), draws=draws, seed=seed)
