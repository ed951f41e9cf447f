"""Power by simulation: how surely a study of n concepts would see the fitted difference (app. D).

A rater rates both names of a concept, so rater and concept effects leave their difference, which
varies with the two names and with the errors alone. A study is a draw of such differences, and its
test a two-sided t-test of the concepts' means at 5%.

Shape suffixes: S simulated study   C concept
"""

import math

import numpy as np
from scipy import stats

from components.study.figures import Figure
from components.study.mixed_models import MixedFit

_LEVEL = 0.05


def power(
    fitted: MixedFit, n_concepts: int, raters_per_concept: float, *, runs: int, seed: int
) -> Figure:
    """Share of simulated studies whose test rejects, with Wilson's interval."""
    random = np.random.default_rng([seed, n_concepts])
    name_variance = fitted.sds.get("name", 0.0) ** 2
    spread = math.sqrt(2 * name_variance + 2 * fitted.residual_sd**2 / raters_per_concept)
    mean_SC = random.normal(fitted.effect, spread, (runs, n_concepts))
    rejected = int((stats.ttest_1samp(mean_SC, 0.0, axis=1).pvalue < _LEVEL).sum())
    interval = stats.binomtest(rejected, runs).proportion_ci(method="wilson")
    return Figure(
        value=rejected / runs, low=float(interval.low), high=float(interval.high), n=runs,
        n_of="simulated studies", unit="probability",
        note=f"{n_concepts} concepts, {raters_per_concept:.1f} raters each",
    )  # fmt: skip
