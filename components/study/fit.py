"""Phase 2 in figures: which name fits better, and where (paper appendix D).

    superiority   P(pipeline rated above human) over pairs of one rater and one concept, ties half
    advantage     mean of pipeline − human over such pairs

Intervals resample concepts with all their ratings.

Shape suffixes: N rows   C concept of the study   W weighting (bootstrap draw)
"""

from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from components.study.config import AnalyseConfig
from components.study.figures import Figure, figure
from components.study.ratings import Floats, Pairs, Ratings, paired
from components.study.sheets import DISTRACTOR, HUMAN, PIPELINE
from model.intervals import intervals, ratio_interval

TOP_TWO_FROM = 4
FEWEST_CONCEPTS = 3
"""Concepts that a correlation or a bin needs to be a figure."""


def fit(fits: Mapping[str, Ratings], config: AnalyseConfig) -> dict[str, Figure]:
    """Mean fit and top-two-box by kind, and what pairs say."""
    found = {}
    for kind, ratings in fits.items():
        count_C = ratings.count_C
        for name, value_N, unit in (
            (f"mean_fit_{kind}", ratings.value_N, "points of 5"),
            (
                f"top_two_{kind}",
                (ratings.value_N >= TOP_TWO_FROM).astype(np.float64),
                "share of ratings",
            ),
        ):
            sums_C = ratings.by_concept(value_N)
            interval = ratio_interval(
                sums_C, count_C, draws=config.bootstrap_draws, seed=config.seed
            )
            found[name] = figure(interval, ratings.n, "ratings", unit)
    for first, second in ((PIPELINE, HUMAN), (PIPELINE, DISTRACTOR), (HUMAN, DISTRACTOR)):
        pairs = paired(dict(fits), first, second)
        found[f"superiority_{first}_over_{second}"] = superiority(pairs, config)
    found["paired_difference"] = advantage(paired(dict(fits)), config)
    return found


def superiority(pairs: Pairs, config: AnalyseConfig) -> Figure:
    """P(first rated above second), ties counted half."""
    above_N = (np.sign(pairs.difference_N) + 1.0) / 2.0
    return _over_pairs(pairs, above_N, "probability", config)


def advantage(pairs: Pairs, config: AnalyseConfig, note: str = "") -> Figure:
    """Mean of first − second."""
    return _over_pairs(pairs, pairs.difference_N, "points", config, note)


def by_coherence(
    pairs: Pairs, coherence_by_id: Mapping[int, float], config: AnalyseConfig
) -> dict[str, Figure]:
    """Advantage among concepts of low, middle and high mean coherence in phase 1."""
    mean_C = _coherence(pairs.first, coherence_by_id)
    bins = {
        "low": mean_C < config.low_below,
        "middle": (mean_C >= config.low_below) & (mean_C < config.high_from),
        "high": mean_C >= config.high_from,
    }
    found = {}
    for name, inside_C in bins.items():
        kept_N = inside_C[pairs.first.concept_N]
        n_concepts = len(np.unique(pairs.first.concept_N[kept_N]))
        if n_concepts >= FEWEST_CONCEPTS:
            chosen = Pairs(_kept(pairs.first, kept_N), _kept(pairs.second, kept_N))
            found[f"advantage_{name}"] = advantage(chosen, config, f"{n_concepts} concepts")
    return found


def correlations(
    fits: Mapping[str, Ratings], coherence_by_id: Mapping[int, float], config: AnalyseConfig
) -> dict[str, Figure]:
    """Pearson's r of a concept's mean coherence with its names' mean fit, by kind."""
    found = {}
    for kind, ratings in fits.items():
        x_C, y_C = _coherence(ratings, coherence_by_id), ratings.mean_C
        both_C = np.isfinite(x_C) & np.isfinite(y_C)
        x_C, y_C = x_C[both_C], y_C[both_C]
        if len(x_C) < FEWEST_CONCEPTS or np.ptp(x_C) == 0 or np.ptp(y_C) == 0:
            continue
        (interval,) = intervals(
            partial(_pearson, x_C, y_C), len(x_C), draws=config.bootstrap_draws, seed=config.seed
        )
        name = f"coherence_to_fit_{kind}"
        found[name] = figure(interval, len(x_C), "concepts", "Pearson's r")
    return found


def _over_pairs(
    pairs: Pairs, value_N: Floats, unit: str, config: AnalyseConfig, note: str = ""
) -> Figure:
    interval = ratio_interval(
        pairs.first.by_concept(value_N), pairs.first.count_C,
        draws=config.bootstrap_draws, seed=config.seed,
    )  # fmt: skip
    return figure(interval, pairs.first.n, "pairs", unit, note)


def _coherence(ratings: Ratings, coherence_by_id: Mapping[int, float]) -> Floats:
    """By concept of these ratings; not a number for concepts that phase 1 has no rating of."""
    return np.array([coherence_by_id.get(k, np.nan) for k in ratings.concept_ids])


def _kept(ratings: Ratings, kept_N: NDArray[np.bool_]) -> Ratings:
    return Ratings(ratings.rater_N[kept_N], ratings.concept_N[kept_N], ratings.value_N[kept_N],
                   ratings.concept_ids)  # fmt: skip


def _pearson(x_C: Floats, y_C: Floats, weight_WC: Floats) -> Floats:
    total_W = weight_WC.sum(axis=1)
    x_W, y_W = weight_WC @ x_C / total_W, weight_WC @ y_C / total_W
    with np.errstate(divide="ignore", invalid="ignore"):
        covariance_W = weight_WC @ (x_C * y_C) / total_W - x_W * y_W
        x_variance_W = weight_WC @ x_C**2 / total_W - x_W**2
        y_variance_W = weight_WC @ y_C**2 / total_W - y_W**2
        return np.asarray(covariance_W / np.sqrt(x_variance_W * y_variance_W))[:, None]
