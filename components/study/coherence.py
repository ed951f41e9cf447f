"""Phase 1 in figures: is one concept recognisable, and do raters agree (paper appendix D)?

    ICC(1)  =  (MSB − MSW) / (MSB + (k̄ − 1) · MSW)        k̄: mean ratings of a concept

from a one-way analysis of variance with concepts as groups. Intervals resample concepts.

Shape suffixes: N rows   C concept of the study   W weighting (bootstrap draw)   F statistic
"""

import numpy as np

from components.study.figures import Figure, figure
from components.study.ratings import Floats, Ratings
from model.intervals import intervals, ratio_interval

RECOGNISABLE_FROM, INCOHERENT_TO = 4, 2
"""Ratings of 4 and 5 say recognisable, 3 borderline, 1 and 2 incoherent (method §1.6)."""


def coherence(ratings: Ratings, *, draws: int, seed: int) -> dict[str, Figure]:
    """The figures of phase 1. ICC(1) and agreement need concepts with two ratings or more."""
    found = {
        name: _mean_of(ratings, value_N, unit, draws, seed)
        for name, (value_N, unit) in _shares(ratings.value_N).items()
    }
    rated_twice = int((ratings.count_C >= 2).sum())
    if rated_twice >= 2:
        found |= _agreement(ratings, draws, seed)
    return found


def anova(ratings: Ratings, weight_WC: Floats) -> Floats:
    """(W, 4): ICC(1), within-concept SD, overall SD, mean, with concepts weighted.

    A concept drawn twice counts as two. Not a number where nothing varies.
    """
    count_C = ratings.count_C
    sum_C = ratings.by_concept(ratings.value_N)
    square_C = ratings.by_concept(ratings.value_N**2)
    rated_C = count_C > 0
    mean_square_C = np.zeros_like(sum_C)
    mean_square_C[rated_C] = sum_C[rated_C] ** 2 / count_C[rated_C]
    groups_W = weight_WC @ rated_C.astype(np.float64)
    total_W, mean_sum_W = weight_WC @ count_C, weight_WC @ sum_C
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_W = mean_sum_W / total_W
        between_W = (weight_WC @ mean_square_C - total_W * mean_W**2) / (groups_W - 1)
        within_W = weight_WC @ (square_C - mean_square_C) / (total_W - groups_W)
        overall_W = (weight_WC @ square_C - total_W * mean_W**2) / (total_W - 1)
        per_concept_W = total_W / groups_W
        icc_W = (between_W - within_W) / (between_W + (per_concept_W - 1) * within_W)
    spread = [np.sqrt(np.maximum(square_W, 0.0)) for square_W in (within_W, overall_W)]
    return np.stack([icc_W, *spread, mean_W], axis=1)


def _shares(value_N: Floats) -> dict[str, tuple[Floats, str]]:
    recognisable_N = value_N >= RECOGNISABLE_FROM
    incoherent_N = value_N <= INCOHERENT_TO
    shares = {
        "recognisable": recognisable_N,
        "borderline": ~recognisable_N & ~incoherent_N,
        "incoherent": incoherent_N,
    }
    return {
        "mean_coherence": (value_N, "points of 5"),
        **{name: (is_it_N.astype(np.float64), "share of ratings")
           for name, is_it_N in shares.items()},
    }  # fmt: skip


def _mean_of(ratings: Ratings, value_N: Floats, unit: str, draws: int, seed: int) -> Figure:
    sum_C = ratings.by_concept(value_N)
    return figure(
        ratio_interval(sum_C, ratings.count_C, draws=draws, seed=seed), ratings.n, "ratings", unit
    )


def _agreement(ratings: Ratings, draws: int, seed: int) -> dict[str, Figure]:
    """Named after what they are in the table of the paper's appendix."""
    found = intervals(
        lambda weight_WC: anova(ratings, weight_WC)[:, :3], ratings.n_concepts,
        draws=draws, seed=seed,
    )  # fmt: skip
    icc, within, overall = found
    highest_C, lowest_C = np.full(ratings.n_concepts, -np.inf), np.full(ratings.n_concepts, np.inf)
    np.maximum.at(highest_C, ratings.concept_N, ratings.value_N)
    np.minimum.at(lowest_C, ratings.concept_N, ratings.value_N)
    several_C = ratings.count_C >= 2
    unanimous_C = (several_C & (highest_C == lowest_C)).astype(np.float64)
    alike = ratio_interval(unanimous_C, several_C.astype(np.float64), draws=draws, seed=seed)
    n_several = int(several_C.sum())
    return {
        "icc1": figure(icc, ratings.n, "ratings", "ICC(1)"),
        "unanimous": figure(alike, n_several, "concepts rated twice or more", "share of concepts"),
        "within_concept_sd": figure(within, ratings.n, "ratings", "points"),
        "overall_sd": figure(overall, ratings.n, "ratings", "points"),
    }
