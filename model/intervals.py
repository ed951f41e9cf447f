"""Bootstrap intervals over groups (documents, sequences, concepts), all draws at once.

A group is drawn whole, so that tokens of one document never pretend to be independent.

Shape suffixes used in this file:
    W weighting (bootstrap draw)   G group   F statistic   N rows
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CELLS_AT_ONCE = 20_000_000
"""Largest table of draws × groups (or rows) held at once."""

Statistic = Callable[[Floats], Floats]
"""Values of some statistics (W × F) under weights of the groups (W × G)."""


@dataclass(frozen=True)
class Interval:
    """A number, its 95% bootstrap interval, and how many groups it rests on."""

    value: float
    low: float
    high: float
    n_groups: int


def intervals(
    statistic: Statistic, n_groups: int, *, draws: int, seed: int, cells_per_group: int = 1
) -> list[Interval]:
    """Percentile intervals of statistics that are functions of the groups' weights.

    Drawing a document twice makes some statistics look better (average precision) or worse
    (entropies) than they are; intervals are shifted by the bias that the resamples show.
    """
    value_F = statistic(np.ones((1, n_groups)))[0]
    drawn_WF = np.concatenate(
        [
            statistic(weight_WG)
            for weight_WG in _weights(n_groups, draws, seed, CELLS_AT_ONCE // cells_per_group)
        ]
    )
    found = []
    for value, drawn_W in zip(value_F.tolist(), drawn_WF.T, strict=True):
        usable_W = drawn_W[np.isfinite(drawn_W)]
        if not len(usable_W):
            raise ValueError(
                f"none of {draws} resamples of {n_groups} groups gives a number; "
                f"there is too little held-out text for this score"
            )
        low, high = np.percentile(usable_W, [2.5, 97.5]) - (usable_W.mean() - value)
        found.append(Interval(value, float(low), float(high), n_groups))
    return found


def ratio_interval(
    numerator_G: Floats, denominator_G: Floats, *, draws: int, seed: int
) -> Interval:
    """Interval of Σ numerator / Σ denominator. Groups that count nothing are left out."""
    used_G = denominator_G != 0
    above_G1, below_G1 = numerator_G[used_G, None], denominator_G[used_G, None]

    def ratio(weight_WG: Floats) -> Floats:
        return np.asarray((weight_WG @ above_G1) / (weight_WG @ below_G1))

    return intervals(ratio, len(above_G1), draws=draws, seed=seed)[0]


def all_alike(*, all_right: bool, n: int) -> tuple[float, float]:
    """The exact 95% interval of a share where all n cases went one way: a bootstrap has no spread
    there, the binomial has."""
    bound = 0.025 ** (1 / n)
    return (bound, 1.0) if all_right else (0.0, 1 - bound)


def by_group(values_N: Floats, group_N: NDArray[np.int64], n_groups: int) -> Floats:
    """Sums of rows by group."""
    return np.bincount(group_N, weights=values_N, minlength=n_groups).astype(np.float64)


def _weights(n_groups: int, draws: int, seed: int, cells: int) -> Iterator[Floats]:
    """How often each group is drawn, some draws at a time; the same whatever fits at once."""
    at_once = max(1, cells // max(1, n_groups))
    shares_G = np.full(n_groups, 1 / n_groups)
    random = np.random.default_rng(seed)
    for start in range(0, draws, at_once):
        n = min(at_once, draws - start)
        yield random.multinomial(n_groups, shares_G, size=n).astype(np.float64)
