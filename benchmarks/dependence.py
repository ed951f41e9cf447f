"""The independence penalty by a width × width cross-covariance against rows × rows kernels."""

import torch
from torch import Tensor

from benchmarks.measure import Contest, race
from model.metrics import dependence

N_ROWS, WIDTH = 4_096, 256


def contest() -> Contest:
    """4,096 rows of width 256."""
    draw = torch.Generator().manual_seed(0)
    known_MD = torch.randn(N_ROWS, WIDTH, generator=draw)
    unknown_MD = torch.randn(N_ROWS, WIDTH, generator=draw)

    def ours() -> float:
        return float(dependence(known_MD, unknown_MD).paper)

    def reference() -> float:
        return _by_kernels(known_MD, unknown_MD)

    off = abs(ours() - reference()) / reference()
    return race(
        f"independence of {N_ROWS:,} rows", reference, ours,
        agreement=f"relative difference {off:.0e}", repeats=3,
    )  # fmt: skip


def _by_kernels(known_MD: Tensor, unknown_MD: Tensor) -> float:
    """tr(K L) / (d² (M − 1)) over centred linear kernels of the rows."""
    first_MD = known_MD - known_MD.mean(0)
    second_MD = unknown_MD - unknown_MD.mean(0)
    traced = ((first_MD @ first_MD.T) * (second_MD @ second_MD.T)).sum()
    return float(traced) / (WIDTH**2 * (N_ROWS - 1))
