"""The independence term by a width × width cross-covariance against rows × rows kernels.

4,096 masked rows of one sequence, with the gradient towards the unknown part, at widths 256 and
1,024.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from benchmarks.measure import Contest, race
from model.forcing import Parts
from model.losses import dependence

N_ROWS = 4_096


def contests() -> Iterator[Contest]:
    """One a width."""
    for width, target in ((256, 20.0), (1_024, 6.0)):
        yield _contest(width, target)


def _contest(width: int, target: float) -> Contest:
    draw = torch.Generator().manual_seed(0)
    known_MD, unknown_MD = torch.randn(2, N_ROWS, width, generator=draw)
    unknown_MD.requires_grad_()
    everywhere_BT = torch.ones(1, N_ROWS, dtype=torch.bool)
    parts = Parts(known_MD, known_MD, unknown_MD, known_MD, everywhere_BT[0])

    def ours() -> tuple[Tensor, Tensor]:
        term = dependence(parts, everywhere_BT, with_residual=False)
        return term, *torch.autograd.grad(term, unknown_MD)

    def reference() -> tuple[Tensor, Tensor]:
        term = _by_kernels(known_MD, unknown_MD)
        return term, *torch.autograd.grad(term, unknown_MD)

    off = max(
        float((one - other).detach().norm() / one.detach().norm())
        for one, other in zip(reference(), ours(), strict=True)
    )
    return race(
        f"independence of {N_ROWS:,} rows, width {width:,}", reference, ours,
        agreement=f"term and gradient within {off:.0e}", repeats=3, target=target,
    )  # fmt: skip


def _by_kernels(known_MD: Tensor, unknown_MD: Tensor) -> Tensor:
    """tr(K L) / (D² (M − 1)) over centred linear kernels of the rows."""
    first_MD = known_MD - known_MD.mean(0)
    second_MD = unknown_MD - unknown_MD.mean(0)
    traced = ((first_MD @ first_MD.T) * (second_MD @ second_MD.T)).sum()
    return traced / (known_MD.shape[1] ** 2 * (N_ROWS - 1))
