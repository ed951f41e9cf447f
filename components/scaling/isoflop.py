"""IsoFLOP slices: at one budget, which size does best (paper §8.2).

    L  =  a · (ln N)² + b · ln N + c   per slice       N*, L* at its vertex
    N* ∝ C^alpha_P,   L* ∝ C^alpha_L                   across slices

A slice counts only when its parabola opens upwards and its vertex lies strictly inside the sizes
tried: a minimum at the edge says where to look next, not where the optimum is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MIN_SIZES = 3


@dataclass(frozen=True)
class Slice:
    """The parabola of one budget and its vertex. `problem` is empty when the vertex counts."""

    budget_flops: float
    curvature: float
    optimal_parameters: float
    optimal_loss_nats: float
    problem: str

    def predict(self, n_parameters_N: Floats) -> Floats:
        """Nats per token of other sizes at this budget."""
        distance_N = np.log(n_parameters_N) - np.log(self.optimal_parameters)
        return np.asarray(self.optimal_loss_nats + self.curvature * distance_N**2)


@dataclass(frozen=True)
class Exponents:
    """How the optimum moves with compute, from the slices that count."""

    parameters: float
    loss: float
    n_slices: int


def fit_slice(
    budget_flops: float,
    n_parameters_N: Floats,
    loss_nats_N: Floats,
    weight_N: Floats | None = None,
) -> Slice:
    """Least squares through the runs of one budget; `weight_N` are counts of a resample."""
    weight_N = np.ones_like(loss_nats_N) if weight_N is None else weight_N
    used_N = weight_N > 0
    log_N = np.log(n_parameters_N[used_N])
    n_sizes = len(np.unique(log_N))
    if n_sizes < MIN_SIZES:
        problem = f"{n_sizes} sizes, a parabola needs {MIN_SIZES}"
        return Slice(budget_flops, float("nan"), float("nan"), float("nan"), problem)

    centre = float(log_N.mean())
    curvature, slope, level = np.polyfit(
        log_N - centre, loss_nats_N[used_N], 2, w=np.sqrt(weight_N[used_N])
    )
    if curvature <= 0:
        problem = "the losses do not curve upwards, so they have no minimum"
        return Slice(budget_flops, float(curvature), float("nan"), float("nan"), problem)

    log_vertex = centre - slope / (2 * curvature)
    problem = ""
    if log_vertex <= log_N.min():
        problem = "the minimum lies at or below the smallest size; add smaller ones"
    elif log_vertex >= log_N.max():
        problem = "the minimum lies at or above the largest size; add larger ones"
    return Slice(
        budget_flops=budget_flops,
        curvature=float(curvature),
        optimal_parameters=float(np.exp(log_vertex)),
        optimal_loss_nats=float(level - slope**2 / (4 * curvature)),
        problem=problem,
    )


def fit_exponents(slices: Sequence[Slice]) -> Exponents | None:
    """Straight lines in logarithms through the optima; None with fewer than two slices left."""
    kept = [piece for piece in slices if not piece.problem]
    if len({piece.budget_flops for piece in kept}) < 2:
        return None
    log_flops_N = np.log([piece.budget_flops for piece in kept])
    parameters = np.polyfit(log_flops_N, np.log([p.optimal_parameters for p in kept]), 1)[0]
    loss = np.polyfit(log_flops_N, np.log([p.optimal_loss_nats for p in kept]), 1)[0]
    return Exponents(float(parameters), float(loss), len(kept))
