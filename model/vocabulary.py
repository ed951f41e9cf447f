"""Nats of tokens from their states, a few rows of logits at a time (paper §5.2, eq. 2).

A vocabulary of 100,281 makes logits the largest tensor of a step: 400 kB a token. Here they exist
for some rows and are forgotten; since what a row weighs in the loss is known beforehand, its
gradients are made while its logits are at hand: three products, nothing recomputed. The backward
pass scales them and reads no weight, so a head that ZeRO-3 has split again in between is no matter.

Shape suffixes used in this file:
    N row   n row of a chunk   D width   V vocabulary
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

MIN_ROWS = 256
"""Rows of a chunk at least: fewer, and adding to the (V, D) gradient outweighs the products."""

CHUNK = 2**22
"""Logits of a chunk, where that is more rows."""


class Nats(NamedTuple):
    """What rows cost."""

    loss: Tensor
    """Σ weight · nats, with gradients to states and head."""

    nll_N: Tensor
    """Nats of each row, in float32, without a gradient."""


def nats(head_VD: Tensor, state_ND: Tensor, target_N: Tensor, weight_N: Tensor) -> Nats:
    """Cross-entropy of each row's target; a weight is what the row counts in the loss.

    Products are made in the type autocast asks for, or the head's own; the rest in float32.
    """
    device = state_ND.device.type
    lowered = torch.is_autocast_enabled(device)
    dtype = torch.get_autocast_dtype(device) if lowered else head_VD.dtype
    loss, nll_N = _Nats.apply(  # type: ignore[no-untyped-call]
        head_VD, state_ND, target_N, weight_N.float(), dtype, torch.is_grad_enabled()
    )
    return Nats(loss, nll_N)


class _Nats(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        head_VD: Tensor,
        state_ND: Tensor,
        target_N: Tensor,
        weight_N: Tensor,
        dtype: torch.dtype,
        graded: bool,
    ) -> tuple[Tensor, Tensor]:
        head_low_VD, state_low_ND = head_VD.to(dtype), state_ND.to(dtype)
        nll_N = torch.empty(len(state_ND), device=state_ND.device)
        grad_VD = head_VD.new_zeros(head_VD.shape if graded else 0, dtype=torch.float32)
        grad_ND = torch.empty_like(state_ND)
        for rows in _chunks(len(state_ND), len(head_VD)):
            logits_nV = (state_low_ND[rows] @ head_low_VD.T).float()
            total_n1 = logits_nV.logsumexp(dim=1, keepdim=True)
            target_n1 = target_N[rows, None]
            nll_N[rows] = (total_n1 - logits_nV.gather(1, target_n1))[:, 0]
            if not graded:
                continue
            # d nats / d logit = softmax − 1 at the target
            slope_nV = logits_nV.sub_(total_n1).exp_()
            slope_nV.scatter_add_(1, target_n1, torch.full_like(total_n1, -1.0))
            slope_nV = slope_nV.mul_(weight_N[rows, None]).to(dtype)
            grad_ND[rows] = (slope_nV @ head_low_VD).to(grad_ND.dtype)
            _add_product(grad_VD, slope_nV.T, state_low_ND[rows])
        ctx.save_for_backward(grad_VD, grad_ND)
        ctx.head_dtype = head_VD.dtype
        ctx.mark_non_differentiable(nll_N)
        return (weight_N * nll_N).sum(), nll_N

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *unused: Tensor) -> tuple[Tensor | None, ...]:
        # In place: a second table as large as the head, and no second backward may come.
        grad_VD, grad_ND = (made.mul_(grad) for made in ctx.saved_tensors)
        return grad_VD.to(ctx.head_dtype), grad_ND, None, None, None, None


def _add_product(total_VD: Tensor, first_Vn: Tensor, second_nD: Tensor) -> None:
    if first_Vn.dtype == total_VD.dtype:
        total_VD.addmm_(first_Vn, second_nD)
    else:
        total_VD += first_Vn @ second_nD


def _chunks(n_rows: int, vocabulary: int) -> list[slice]:
    """Chunks of nearly equal size."""
    n_chunks = -(-n_rows // max(MIN_ROWS, CHUNK // vocabulary))
    size = -(-n_rows // n_chunks) if n_chunks else 1
    return [slice(start, start + size) for start in range(0, n_rows, size)]
