"""Interpretability metrics (paper §7.1, method §0.4 and §7.1), from tensors to numbers per row.

    contribution   (|k̂·W| + |û·W|) / (|k̂·W| + |û·W| + |ε·W|)    three aggregate projections, eq. 22
    concept loss   BCE of the OR over a chunk's tokens, all concepts        eq. 9-10
    independence   ‖Ψᵀ Φ‖² / (D² (M − 1)), and its scale-free form (cka)    eq. 13-14
    top tokens     what a concept's embedding says in the vocabulary: the card's evidence

The share of absolute projections is 1 for any network without a residual and says nothing about
use, so the loss with parts taken away stands beside it. Callers average rows, by document.

Shape suffixes used in this file:
    N row (a token that is asked for)   D width   V vocabulary   K known concept   C chunk
    M rows of one sequence   J tokens of a card
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from model.bottleneck import Decomposition
from model.language_model import LanguageModel
from model.likelihood import row_slices
from model.steering import effective, override
from model.tiles import SMALLEST, log1mexp


@dataclass(frozen=True)
class Projections:
    """Each part's share of the target's logit: signed dot products with the target's row."""

    known_N: Tensor
    unknown_N: Tensor
    residual_N: Tensor

    @property
    def contribution_N(self) -> Tensor:
        """Share of the named parts, known and unknown, in absolute value (eq. 22)."""
        return (self.known_N.abs() + self.unknown_N.abs()) / self._absolute_N

    @property
    def known_share_N(self) -> Tensor:
        """Share of the known part alone: what has a human name."""
        return self.known_N.abs() / self._absolute_N

    @property
    def signed_N3(self) -> Tensor:
        """Known, unknown and residual over the same total, with their signs."""
        parts_N3 = torch.stack([self.known_N, self.unknown_N, self.residual_N], dim=1)
        return parts_N3 / self._absolute_N[:, None]

    @property
    def total_N(self) -> Tensor:
        """The target's logit."""
        return self.known_N + self.unknown_N + self.residual_N

    @property
    def _absolute_N(self) -> Tensor:
        absolute_N = self.known_N.abs() + self.unknown_N.abs() + self.residual_N.abs()
        return absolute_N.clamp(min=1e-12)


@dataclass(frozen=True)
class Readout:
    """Nats of each target from its whole state and from altered ones, and its projections."""

    nll_N: Tensor
    residual_zero_N: Tensor
    """From the known and unknown parts alone."""

    known_zero_N: Tensor
    """From the unknown part and the residual."""

    forced_N: Tensor
    """From the labels' embeddings and the unknown part: the state training forces (§3.3)."""

    projections: Projections
    logit_error_N: Tensor
    """|the target's logit from the whole state − the sum of its projections|."""


@torch.no_grad()
def read_targets(
    lm: LanguageModel, hidden_ND: Tensor, truth_ND: Tensor, target_N: Tensor
) -> Readout:
    """Take each state apart and ask every combination for its target."""
    pieces = [
        _read_rows(lm, hidden_ND[rows], truth_ND[rows], target_N[rows])
        for rows in row_slices(len(target_N))
    ]
    if not pieces:
        raise ValueError("no token to read: the sequences hold padding alone")
    return Readout(
        nll_N=torch.cat([piece.nll_N for piece in pieces]),
        residual_zero_N=torch.cat([piece.residual_zero_N for piece in pieces]),
        known_zero_N=torch.cat([piece.known_zero_N for piece in pieces]),
        forced_N=torch.cat([piece.forced_N for piece in pieces]),
        projections=Projections(
            torch.cat([piece.projections.known_N for piece in pieces]),
            torch.cat([piece.projections.unknown_N for piece in pieces]),
            torch.cat([piece.projections.residual_N for piece in pieces]),
        ),
        logit_error_N=torch.cat([piece.logit_error_N for piece in pieces]),
    )


def _read_rows(lm: LanguageModel, hidden_ND: Tensor, truth_ND: Tensor, target_N: Tensor) -> Readout:
    parts = lm.concepts(hidden_ND)
    known_NV, unknown_NV = lm.unembed(parts.known_BTD), lm.unembed(parts.unknown_BTD)
    residual_NV = lm.unembed(parts.residual_BTD)
    forced_NV = lm.unembed(truth_ND) + unknown_NV
    column_N1 = target_N[:, None]
    projections = Projections(
        known_NV.gather(1, column_N1)[:, 0],
        unknown_NV.gather(1, column_N1)[:, 0],
        residual_NV.gather(1, column_N1)[:, 0],
    )
    whole_N = (lm.composed(hidden_ND) * lm.head_VD[target_N]).sum(dim=1)

    def nats(logits_NV: Tensor) -> Tensor:
        return F.cross_entropy(logits_NV.float(), target_N, reduction="none")

    return Readout(
        nll_N=nats(known_NV + unknown_NV + residual_NV),
        residual_zero_N=nats(known_NV + unknown_NV),
        known_zero_N=nats(unknown_NV + residual_NV),
        forced_N=nats(forced_NV),
        projections=projections,
        logit_error_N=(whole_N - projections.total_N).abs(),
    )


@dataclass(frozen=True)
class Agreement:
    """Changes of the target's logit when one concept is set to zero: foretold and seen."""

    predicted_N: Tensor
    observed_N: Tensor


@torch.no_grad()
def agreement(lm: LanguageModel, hidden_ND: Tensor, target_N: Tensor) -> Agreement:
    """Silence the strongest known concept of each row. Foretold: −k · (K · W_y), before it is
    done; seen: the logit of the changed state less the logit of the state."""
    parts: Decomposition = lm.concepts(hidden_ND)
    predicted, observed = [], []
    for row, concept in enumerate(parts.top.ids[:, 0].tolist()):
        weight_D = lm.head_VD[target_N[row]].float()
        activation = effective(parts.top, concept)[row]
        predicted.append(-activation * (lm.concepts.known.embedding_KD[concept].float() @ weight_D))
        changed_1D = override(lm, hidden_ND[row : row + 1], {concept: 0.0}, {})
        logits_2V = lm.unembed(
            torch.cat([changed_1D, lm.composed(hidden_ND[row : row + 1]).float()])
        )
        observed.append(logits_2V[0, target_N[row]] - logits_2V[1, target_N[row]])
    return Agreement(torch.stack(predicted), torch.stack(observed))


@torch.no_grad()
def add_absence(absence_CK: Tensor, logits_NK: Tensor, chunk_N: Tensor) -> None:
    """Add each row's −log(1 − k) to its chunk, in place: the noisy OR over a chunk's tokens is
    1 − e^−absence, whatever order or number of windows they come in."""
    absence_CK.index_add_(0, chunk_N, F.softplus(logits_NK.float()))


def presence(absence_CK: Tensor) -> Tensor:
    """Probability that the chunk has the concept."""
    return -torch.expm1(-absence_CK)


def concept_nats(absence_CK: Tensor, label_CK: Tensor) -> Tensor:
    """BCE of each chunk, averaged over all concepts (C)."""
    present_CK = -log1mexp(absence_CK.clamp(min=SMALLEST))
    return torch.where(label_CK, present_CK, absence_CK).mean(dim=1)


def base_rate_nats(label_CK: Tensor) -> float:
    """Entropy of one base rate for all concepts: what a constant guess costs."""
    return float(_entropy(label_CK.double().mean()))


def prevalence_nats(label_CK: Tensor) -> float:
    """Mean entropy of each concept's own rate: the best that no look at the text can do."""
    return float(_entropy(label_CK.double().mean(dim=0)).mean())


def _entropy(rate: Tensor) -> Tensor:
    return -(torch.xlogy(rate, rate) + torch.xlogy(1 - rate, 1 - rate))


@dataclass(frozen=True)
class Dependence:
    """Linear dependence between the known and the unknown part of one sequence."""

    paper: float
    cka: float
    """In [0, 1], whatever the parts' scales."""


@torch.no_grad()
def dependence(known_MD: Tensor, unknown_MD: Tensor) -> Dependence:
    """Both forms, over the rows of one sequence (two or more)."""
    n_rows, width = known_MD.shape
    known_MD = (known_MD - known_MD.mean(dim=0)).double()
    unknown_MD = (unknown_MD - unknown_MD.mean(dim=0)).double()
    cross = float((unknown_MD.T @ known_MD).square().sum())
    own = float((known_MD.T @ known_MD).norm() * (unknown_MD.T @ unknown_MD).norm())
    return Dependence(cross / (width**2 * (n_rows - 1)), cross / max(own, 1e-30))


@torch.no_grad()
def top_tokens(
    lm: LanguageModel, concept_ids: Sequence[int], n_tokens: int, special_ids: Sequence[int]
) -> NDArray[np.int64]:
    """The tokens whose logits each concept raises most, best first: T_J(c), special ones apart."""
    embedding_KD = lm.concepts.known.embedding_KD[list(concept_ids)].float()
    logits_KV = lm.unembed(embedding_KD)
    logits_KV[:, list(special_ids)] = -torch.inf
    return logits_KV.topk(n_tokens, dim=1).indices.numpy()
