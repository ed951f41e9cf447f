"""The strongest concepts of each row, found a tile of rows at a time and kept alone (paper §5.3).

Logits are query · predictor + bias. A tile's logits are made, searched and forgotten: block by
block with the maximum of every group of concepts, then the k groups with the largest, then the k
largest of their members. That is exact: each of the k best lies in a group whose maximum is at
least as large.
What is kept for the backward pass is ids and activations; it makes the k logits' gradients anew.

Shape suffixes used in this file:
    N row   Q query width   K concept   k concept kept   G group   E embedding width
    leading dimensions are free where a name begins with the last one: (…, Q)
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

CLAMP = 15.0
"""Logits are cut to ± this before the sigmoid, as released, but ranked uncut: cut ones tie."""

GROUP = 16
"""Concepts of a group. 32 takes 4% longer at 33,732 concepts and as long at 101,196."""

ROWS = 128
"""Rows of a tile: 17 MB of logits at 33,732 concepts, 52 MB at 101,196. With 64 and with 256 the
predictor is read again too often, or the tile leaves the last cache."""

BLOCK = 2**17
"""Logits of a block: half a MiB, whose maxima are taken while a core's own cache still holds it."""


@dataclass(frozen=True)
class TopConcepts:
    """The concepts kept at each token, strongest first; all others weigh exactly nothing."""

    ids: Tensor
    """int64 (…, k)"""

    activations: Tensor
    """float32 (…, k), in [0, 1]"""


def top_concepts(
    query_Q: Tensor, predictor_KQ: Tensor, bias_K: Tensor | None, k: int
) -> TopConcepts:
    """The k concepts with the largest logits at each row (…, Q), all in float32.

    Their activations carry gradients to query, predictor and bias; which concepts they are does
    not. The predictor is kept for the backward pass as it stands, so it must still be whole then.
    """
    query_NQ = query_Q.reshape(-1, query_Q.shape[-1])
    with torch.no_grad():
        values_Nk, ids_Nk = _search(query_NQ, predictor_KQ, bias_K, k)
    active_Nk = _KeptActivations.apply(query_NQ, predictor_KQ, bias_K, ids_Nk, values_Nk)  # type: ignore[no-untyped-call]
    shape = (*query_Q.shape[:-1], k)
    return TopConcepts(ids_Nk.view(shape), active_Nk.view(shape))


def top_k(logits_NK: Tensor, k: int, group: int = GROUP) -> tuple[Tensor, Tensor]:
    """Values and ids (N, k) of each row's k largest logits, largest first, in two levels."""
    groups = _Groups(logits_NK.shape[1], logits_NK.shape[1], group)
    best_NG = logits_NK.new_empty(len(logits_NK), groups.n)
    if groups.n:
        groups.maxima(logits_NK, groups.blocks[0], best_NG)
    return groups.strongest(logits_NK, best_NG, k)


def activations(logits: Tensor) -> Tensor:
    """σ(logits), with the released cut."""
    return logits.clamp(-CLAMP, CLAMP).sigmoid()


def weighted_rows(table_KE: Tensor, top: TopConcepts) -> Tensor:
    """Σ activation · table[id] over the kept concepts (…, E), without a (rows, k, E) tensor."""
    k = top.ids.shape[-1]
    bags_NE = F.embedding_bag(
        top.ids.reshape(-1, k),
        table_KE,
        per_sample_weights=top.activations.reshape(-1, k),
        mode="sum",
    )
    return bags_NE.view(*top.ids.shape[:-1], table_KE.shape[-1])


@dataclass(frozen=True)
class _Groups:
    """Which concepts are a group: every n-th of a block, n being the block's groups.

    So a maximum is taken along contiguous rows, and as soon as a block's logits are made. What is
    left over at the end belongs to no group and is a candidate always.
    """

    n_concepts: int
    width: int
    """Concepts of a block, but for the last one: its beginning that groups fill."""

    size: int
    """Concepts of a group."""

    @property
    def blocks(self) -> list[slice]:
        starts = range(0, self.n_concepts, self.width)
        return [slice(start, min(start + self.width, self.n_concepts)) for start in starts]

    @property
    def n(self) -> int:
        return sum((block.stop - block.start) // self.size for block in self.blocks)

    def maxima(self, logits_NK: Tensor, block: slice, best_NG: Tensor) -> None:
        """Write the largest logit of each group of a block into its place."""
        n_groups = (block.stop - block.start) // self.size
        first = block.start // self.size
        grouped_NK = logits_NK[:, block.start : block.start + n_groups * self.size]
        grouped_NgG = grouped_NK.view(len(logits_NK), self.size, n_groups)
        torch.amax(grouped_NgG, 1, out=best_NG[:, first : first + n_groups])

    def strongest(self, logits_NK: Tensor, best_NG: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """The k largest logits, of the members of the k groups with the largest maxima."""
        if self.n <= k:
            values_Nk, ids_Nk = logits_NK.topk(k)
            return values_Nk, ids_Nk
        best_Nk = best_NG.topk(k, sorted=False).indices
        ids_NgK = self._members(best_Nk).flatten(1)
        left_over = torch.arange(self.n * self.size, self.n_concepts, device=logits_NK.device)
        ids_NgK = torch.cat([ids_NgK, left_over.expand(len(ids_NgK), -1)], dim=1)
        values_Nk, place_Nk = logits_NK.gather(1, ids_NgK).topk(k)
        return values_Nk, ids_NgK.gather(1, place_Nk)

    def _members(self, group_Nk: Tensor) -> Tensor:
        """Ids of the concepts of some groups (N, size, k)."""
        in_block = self.width // self.size
        n_whole = self.n_concepts // self.width
        block_Nk = group_Nk // in_block
        last = max(1, self.n - n_whole * in_block)
        step_Nk = torch.where(block_Nk < n_whole, in_block, last)
        first_Nk = block_Nk * self.width + group_Nk % in_block
        place = torch.arange(self.size, device=group_Nk.device)[:, None]
        return first_Nk[:, None] + place * step_Nk[:, None]


def _search(
    query_NQ: Tensor, predictor_KQ: Tensor, bias_K: Tensor | None, k: int
) -> tuple[Tensor, Tensor]:
    n_rows, n_concepts = min(ROWS, len(query_NQ)), len(predictor_KQ)
    groups = _Groups(n_concepts, _width(n_rows, n_concepts, query_NQ.device), GROUP)
    buffer_NK = query_NQ.new_empty(n_rows, n_concepts)
    best_NG = query_NQ.new_empty(n_rows, groups.n)
    values_Nk = query_NQ.new_empty(len(query_NQ), k)
    ids_Nk = torch.empty(len(query_NQ), k, dtype=torch.int64, device=query_NQ.device)
    for start in range(0, len(query_NQ), ROWS):
        rows = slice(start, start + ROWS)
        logits_NK, tile_NG = buffer_NK[: len(query_NQ[rows])], best_NG[: len(query_NQ[rows])]
        for block in groups.blocks:
            torch.mm(query_NQ[rows], predictor_KQ[block].T, out=logits_NK[:, block])
            if bias_K is not None:
                logits_NK[:, block] += bias_K[block]
            groups.maxima(logits_NK, block, tile_NG)
        values_Nk[rows], ids_Nk[rows] = groups.strongest(logits_NK, tile_NG, k)
    return values_Nk, ids_Nk


def _width(n_rows: int, n_concepts: int, device: torch.device) -> int:
    """Concepts of a block: what a core's cache holds; all where launches cost more than reads."""
    if device.type != "cpu":
        return max(GROUP, n_concepts)
    return max(GROUP, BLOCK // max(1, n_rows) // GROUP * GROUP)


class _KeptActivations(torch.autograd.Function):
    """Activations of the kept logits, whose values are known, as a function of their origin.

    Ids and activations are all that grows with the rows: 12 bytes a kept concept.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query_NQ: Tensor,
        predictor_KQ: Tensor,
        bias_K: Tensor | None,
        ids_Nk: Tensor,
        values_Nk: Tensor,
    ) -> Tensor:
        active_Nk = activations(values_Nk)
        ctx.save_for_backward(query_NQ, predictor_KQ, bias_K, ids_Nk, active_Nk)
        return active_Nk

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_Nk: Tensor) -> tuple[Tensor | None, ...]:
        query_NQ, predictor_KQ, bias_K, ids_Nk, active_Nk = ctx.saved_tensors
        low, high = activations(active_Nk.new_tensor([-CLAMP, CLAMP]))
        inside_Nk = (active_Nk > low) & (active_Nk < high)  # nothing moves what was cut
        grad_Nk = grad_Nk * active_Nk * (1.0 - active_Nk) * inside_Nk
        # The gradient towards the query is a bag of predictor rows weighed by the gradients; the
        # bag's own gradient towards its table, at the query, is the one towards the predictor.
        with torch.enable_grad():
            table_KQ = predictor_KQ.detach().requires_grad_()
            bag_NQ = F.embedding_bag(ids_Nk, table_KQ, per_sample_weights=grad_Nk, mode="sum")
        (grad_KQ,) = torch.autograd.grad(bag_NQ, table_KQ, query_NQ)
        grad_K = None
        if bias_K is not None:
            grad_K = torch.zeros_like(bias_K).index_add_(0, ids_Nk.flatten(), grad_Nk.flatten())
        return bag_NQ.detach(), grad_KQ, grad_K, None, None
