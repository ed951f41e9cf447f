"""Sums over all concepts, made a tile of concepts at a time (paper §5.3-5.4, eq. 5-10).

    concept_sum    Σ_c σ(z_c) E_c of every row                   2 products, 5 again in backward
    concept_pass   the same without a gradient, and the chunk-OR loss *with* its gradients, in one
                   pass: 2 products for the sum and 3 for loss and gradients, which share a logit

Logits z = query · predictor + bias exist for one tile of concepts and are forgotten. The loss needs
no second pass because a concept's gradient depends on its own column alone: with S = Σ softplus(z)
over a chunk's tokens, −log(1 − P) = S and −log P = −log(1 − e^−S), and a tile holds whole columns.

Under ZeRO-3 `concept_sum` reads its tables again in backward, so it must be called within the
forward of the module that owns them; the gradients of `concept_pass` are made in forward.

Shape suffixes used in this file:
    N row   Q query width   K concept   k concept of a tile   E embedding width   C chunk
    M place for a concept   P pair of a voting row and a label of its chunk   L label of a chunk
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from model.topk import CLAMP, activations

TILE = 2**18
"""Logits of a tile: 1 MiB, so that a tile is still in cache when it is read again."""

MIN_CONCEPTS = 128
"""Concepts of a tile at least, however many rows there are."""

SMALLEST = 1e-30
"""Σ softplus below this has no usable gradient in float32; far beyond any cut logit."""


@dataclass(frozen=True)
class Votes:
    """Which rows vote on which chunk's concepts: the last rows of a pass, each on one chunk."""

    chunk_N: Tensor
    """int64: row of `concepts_CM`, of each voting row."""

    concepts_CM: Tensor
    """int64: labels of each chunk, none twice, −1 in unused places."""

    def __len__(self) -> int:
        return len(self.chunk_N)


class Pass(NamedTuple):
    """What one pass over all concepts gives."""

    loss: Tensor
    """Σ over the chunks voted on of the mean over concepts of BCE(1 − Π(1 − σ(z)), label)."""

    sum_NE: Tensor
    """Σ_c σ(z_c) E_c of the summed rows, without a gradient."""

    n_active: Tensor
    """Concepts of the summed rows with an activation above one half, without a gradient."""

    labelled: Tensor
    unlabelled: Tensor
    """Σ of the voting rows' activations, over their chunk's labels and over all others."""


def concept_sum(
    query_NQ: Tensor,
    predictor_KQ: Tensor,
    bias_K: Tensor | None,
    embedding_KE: Tensor,
    known_NE: Tensor | None = None,
) -> Tensor:
    """Σ_c σ(z_c) E_c (N, E) over all concepts. `known_NE` is the sum where a pass has made it."""
    summed: Tensor = _ConceptSum.apply(query_NQ, predictor_KQ, bias_K, embedding_KE, known_NE)  # type: ignore[no-untyped-call]
    return summed


def concept_pass(
    query_NQ: Tensor,
    predictor_KQ: Tensor,
    bias_K: Tensor | None,
    embedding_KE: Tensor,
    votes: Votes,
    n_summed: int,
) -> Pass:
    """The first `n_summed` rows summed, the last `len(votes)` rows voting; they may overlap."""
    graded = torch.is_grad_enabled()
    made = _ConceptPass.apply(  # type: ignore[no-untyped-call]
        query_NQ, predictor_KQ, bias_K, embedding_KE, votes, n_summed, graded
    )
    return Pass(*made)


def log1mexp(values: Tensor) -> Tensor:
    """log(1 − e^−x) for x > 0, exact at both ends."""
    small = values < 0.693
    # Each branch must be finite where the other is taken, or its gradient is no number.
    near_zero = torch.log(-torch.expm1(-torch.where(small, values, 0.5)))
    far = torch.log1p(-torch.exp(-torch.where(small, 1.0, values)))
    return torch.where(small, near_zero, far)


@dataclass(frozen=True)
class _Tile:
    """Some concepts and their logits (N, k), which the next tile overwrites."""

    concepts: slice
    logits_Nk: Tensor


def _tiles(query_NQ: Tensor, predictor_KQ: Tensor, bias_K: Tensor | None) -> Iterator[_Tile]:
    n_rows, n_concepts = len(query_NQ), len(predictor_KQ)
    width = min(n_concepts, max(MIN_CONCEPTS, TILE // max(1, n_rows)))
    # One buffer for all: memory that is new every time costs a twentieth of the product.
    buffer = query_NQ.new_empty(n_rows * width)
    for start in range(0, n_concepts, width):
        concepts = slice(start, min(start + width, n_concepts))
        room_Nk = buffer[: n_rows * (concepts.stop - start)].view(n_rows, concepts.stop - start)
        logits_Nk = torch.mm(query_NQ, predictor_KQ[concepts].T, out=room_Nk)
        if bias_K is not None:
            logits_Nk += bias_K[concepts]
        yield _Tile(concepts, logits_Nk)


class _ConceptSum(torch.autograd.Function):
    """Keeps its inputs alone; backward makes the logits again, a tile at a time."""

    @staticmethod
    def forward(
        ctx: Any,
        query_NQ: Tensor,
        predictor_KQ: Tensor,
        bias_K: Tensor | None,
        embedding_KE: Tensor,
        known_NE: Tensor | None,
    ) -> Tensor:
        ctx.save_for_backward(query_NQ, predictor_KQ, bias_K, embedding_KE)
        if known_NE is not None:
            return known_NE.clone()
        sum_NE = query_NQ.new_zeros(len(query_NQ), embedding_KE.shape[1])
        for tile in _tiles(query_NQ, predictor_KQ, bias_K):
            sum_NE.addmm_(activations(tile.logits_Nk), embedding_KE[tile.concepts])
        return sum_NE

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_NE: Tensor) -> tuple[Tensor | None, ...]:
        query_NQ, predictor_KQ, bias_K, embedding_KE = ctx.saved_tensors
        grads = _Gradients.zeros(query_NQ, predictor_KQ, bias_K, of_query=ctx.needs_input_grad[0])
        grad_KE = torch.empty_like(embedding_KE)
        for tile in _tiles(query_NQ, predictor_KQ, bias_K):
            cut_Nk = tile.logits_Nk.clamp(-CLAMP, CLAMP)
            inside_Nk = cut_Nk == tile.logits_Nk
            active_Nk = cut_Nk.sigmoid_()
            torch.mm(active_Nk.T, grad_NE, out=grad_KE[tile.concepts])
            # d logit = (d sum · E) σ (1 − σ), and nothing beyond the cut
            through_Nk = torch.mm(grad_NE, embedding_KE[tile.concepts].T, out=tile.logits_Nk)
            through_Nk *= active_Nk
            through_Nk -= active_Nk.mul_(through_Nk)
            through_Nk *= inside_Nk
            grads.add(tile.concepts, through_Nk, slice(None))
        return grads.query_NQ, grads.predictor_KQ, grads.bias_K, grad_KE, None


class _ConceptPass(torch.autograd.Function):
    """Makes the loss's gradients together with the loss; backward only scales them."""

    @staticmethod
    def forward(
        ctx: Any,
        query_NQ: Tensor,
        predictor_KQ: Tensor,
        bias_K: Tensor | None,
        embedding_KE: Tensor,
        votes: Votes,
        n_summed: int,
        graded: bool,
    ) -> tuple[Tensor, ...]:
        voting = slice(len(query_NQ) - len(votes), None)
        ballot = _Ballot(votes, query_NQ)
        grads = _Gradients.zeros(query_NQ, predictor_KQ, bias_K, of_query=True)
        sum_NE = query_NQ.new_zeros(n_summed, embedding_KE.shape[1])
        n_active = torch.zeros((), device=query_NQ.device)
        for tile in _tiles(query_NQ, predictor_KQ, bias_K):
            if n_summed:
                summed_Nk = tile.logits_Nk[:n_summed]
                sum_NE.addmm_(activations(summed_Nk), embedding_KE[tile.concepts])
                n_active += (summed_Nk > 0).sum()
            slope_Nk = ballot.count(tile.concepts, tile.logits_Nk[voting])
            if graded:
                grads.add(tile.concepts, slope_Nk, voting)
        loss = ballot.loss() / len(predictor_KQ)
        ctx.n_concepts = len(predictor_KQ)
        ctx.save_for_backward(grads.query_NQ, grads.predictor_KQ, grads.bias_K)
        labelled, unlabelled = ballot.labelled.float(), ballot.unlabelled.float()
        ctx.mark_non_differentiable(sum_NE, n_active, labelled, unlabelled)
        return loss.to(query_NQ.dtype), sum_NE, n_active, labelled, unlabelled

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *unused: Tensor) -> tuple[Tensor | None, ...]:
        scale = grad / ctx.n_concepts
        # In place: the tables are as large as the weights, and no second backward may come.
        query_NQ, predictor_KQ, bias_K = (
            None if made is None else made.mul_(scale) for made in ctx.saved_tensors
        )
        return query_NQ, predictor_KQ, bias_K, None, None, None, None


@dataclass(frozen=True)
class _Gradients:
    query_NQ: Tensor | None
    predictor_KQ: Tensor
    bias_K: Tensor | None
    rows_NQ: Tensor
    tables_KQ: Tensor

    @classmethod
    def zeros(
        cls, query_NQ: Tensor, predictor_KQ: Tensor, bias_K: Tensor | None, *, of_query: bool
    ) -> "_Gradients":
        return cls(
            torch.zeros_like(query_NQ) if of_query else None,
            torch.empty_like(predictor_KQ),
            None if bias_K is None else torch.empty_like(bias_K),
            query_NQ,
            predictor_KQ,
        )

    def add(self, concepts: slice, slope_Nk: Tensor, rows: slice) -> None:
        """Take in a tile's d loss / d logit of some rows."""
        torch.mm(slope_Nk.T, self.rows_NQ[rows], out=self.predictor_KQ[concepts])
        if self.query_NQ is not None:
            self.query_NQ[rows].addmm_(slope_Nk, self.tables_KQ[concepts])
        if self.bias_K is not None:
            torch.sum(slope_Nk, dim=0, out=self.bias_K[concepts])


class _Ballot:
    """The chunk-OR loss, counted tile by tile.

    An unlabelled concept adds Σ softplus(z) over all rows, whatever their chunk; only the few
    labelled pairs of chunk and concept need a sum of their own.
    """

    def __init__(self, votes: Votes, like: Tensor) -> None:
        labels_NM = votes.concepts_CM[votes.chunk_N]
        row_P, place_P = (labels_NM >= 0).nonzero(as_tuple=True)
        concept_P, order_P = labels_NM[row_P, place_P].sort()
        self.row_P = row_P[order_P]
        self.concept_P = concept_P
        self.label_P = (votes.chunk_N[row_P] * labels_NM.shape[1] + place_P)[order_P]
        self.absent_L = like.new_zeros(votes.concepts_CM.numel())
        totals = torch.zeros(3, dtype=torch.float64, device=like.device)
        self.absent, self.labelled, self.unlabelled = totals.unbind()

    def count(self, concepts: slice, logits_Nk: Tensor) -> Tensor:
        """Count a tile; returns d loss / d logit (N, k), times the number of concepts."""
        first, end = torch.searchsorted(
            self.concept_P, torch.tensor([concepts.start, concepts.stop])
        ).tolist()
        row_P, label_P = self.row_P[first:end], self.label_P[first:end]
        at = (row_P, self.concept_P[first:end] - concepts.start)
        self.absent_L.index_add_(0, label_P, F.softplus(logits_Nk[at]))
        slope_Nk = logits_Nk.sigmoid()
        slope_P = slope_Nk[at]
        # Labelled places count for nothing in the total: softplus(−∞) is 0.
        logits_Nk[at], slope_Nk[at] = -torch.inf, 0.0
        self.labelled += slope_P.sum()
        self.unlabelled += slope_Nk.sum()
        self.absent += _total_softplus(logits_Nk, slope_Nk)
        slope_Nk[at] = slope_P / -torch.expm1(self.absent_L[label_P].clamp(min=SMALLEST))
        return slope_Nk

    def loss(self) -> Tensor:
        """Σ over chunks and concepts; every label with a vote has been counted by now."""
        voted_L = self.label_P.bincount(minlength=len(self.absent_L)) > 0
        present_L = -log1mexp(self.absent_L[voted_L].clamp(min=SMALLEST))
        return self.absent + present_L.sum()


def _total_softplus(logits_Nk: Tensor, sigmoid_Nk: Tensor) -> Tensor:
    """Σ log(1 + e^z) = Σ max(z, 0) − Σ log(1 − min(σ, 1 − σ)), at half the price of softplus.

    The sigmoid is at hand, and two factors of the product Π (1 − m) share one logarithm. The logits
    are lost.
    """
    least_Nk = 1.0 - sigmoid_Nk
    torch.minimum(least_Nk, sigmoid_Nk, out=least_Nk)
    half = least_Nk.shape[1] // 2
    first_Nk, second_Nk = least_Nk[:, :half], least_Nk[:, half : 2 * half]
    either_Nk = (first_Nk + second_Nk).addcmul_(first_Nk, second_Nk, value=-1.0)
    logs = either_Nk.neg_().log1p_().sum() + torch.log1p(-least_Nk[:, 2 * half :]).sum()
    return logits_Nk.clamp_(min=0.0).sum() - logs
