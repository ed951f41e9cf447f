"""The strongest concepts of each row, found a tile of rows at a time and kept alone (paper §5.3).

Logits are query · predictor + bias. A tile's logits are made, searched and forgotten: first the
maximum of every group of concepts, then the k groups with the largest, then the k largest of their
members. That is exact: each of the k best lies in a group whose maximum is at least as large.
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

MIN_ROWS, MAX_ROWS = 64, 256
"""Rows of a tile; between these, as many as `TILE` logits allow."""

TILE = 2**22
"""Logits of a tile: 16 MiB, which a processor's last cache holds."""


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
    n_groups = logits_NK.shape[1] // group
    if n_groups <= k:
        values_Nk, ids_Nk = logits_NK.topk(k)
        return values_Nk, ids_Nk

    # A group is every n_groups-th concept: its maximum is then taken along contiguous rows. What
    # is left over at the end belongs to no group and is a candidate always.
    end = n_groups * group
    grouped_NgG = logits_NK[:, :end].view(len(logits_NK), group, n_groups)
    best_Nk = grouped_NgG.amax(1).topk(k, sorted=False).indices
    members_Ngk = grouped_NgG.gather(2, best_Nk[:, None].expand(-1, group, -1))
    candidates = torch.cat([members_Ngk.flatten(1), logits_NK[:, end:]], dim=1)
    values_Nk, place_Nk = candidates.topk(k)
    grouped_Nk = place_Nk // k * n_groups + best_Nk.gather(1, place_Nk % k)
    left_over_Nk = place_Nk - group * k + end
    return values_Nk, torch.where(place_Nk < group * k, grouped_Nk, left_over_Nk)


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


def _search(
    query_NQ: Tensor, predictor_KQ: Tensor, bias_K: Tensor | None, k: int
) -> tuple[Tensor, Tensor]:
    n_concepts = len(predictor_KQ)
    n_rows = max(MIN_ROWS, min(MAX_ROWS, TILE // n_concepts))
    buffer_NK = query_NQ.new_empty(min(n_rows, len(query_NQ)), n_concepts)
    values_Nk = query_NQ.new_empty(len(query_NQ), k)
    ids_Nk = torch.empty(len(query_NQ), k, dtype=torch.int64, device=query_NQ.device)
    for start in range(0, len(query_NQ), n_rows):
        rows = slice(start, start + n_rows)
        logits_NK = buffer_NK[: len(query_NQ[rows])]
        torch.mm(query_NQ[rows], predictor_KQ.T, out=logits_NK)
        if bias_K is not None:
            logits_NK += bias_K
        values_Nk[rows], ids_Nk[rows] = top_k(logits_NK, k)
    return values_Nk, ids_Nk


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
