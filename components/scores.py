"""One measured number with its unit, its n and its 95% interval, and what makes one of sums.

Each score answers to one condition of an inherently interpretable model (method §0.4), or to
capability.

Shape suffixes used in this file:
    G group that is resampled as a whole (a document, a conversation)
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from model.config import Config
from model.intervals import Interval, ratio_interval

Floats = NDArray[np.float64]

Condition = Literal[
    "capability", "nativeness", "agreement", "validity", "interpretation", "coverage"
]


class Score(Config):
    """One measured number. `low` and `high` bound its 95% interval."""

    value: float
    n: int
    n_of: str
    """What is counted and, for intervals, resampled: documents, sequences, concepts, tokens."""

    low: float
    high: float
    unit: str
    condition: Condition
    note: str = ""


Scores = dict[str, Score]


@dataclass(frozen=True)
class Scorer:
    """Turns sums and samples into scores at one number of bootstrap draws and one seed."""

    draws: int
    seed: int

    def ratio(
        self, above_G: Floats, below_G: Floats, unit: str, condition: Condition, note: str = "",
        n_of: str = "documents",
    ) -> Score:  # fmt: skip
        """Σ above / Σ below over documents, resampled by document."""
        found = ratio_interval(above_G, below_G, draws=self.draws, seed=self.seed)
        return scored(found, n_of, unit, condition, note)

    def mean(
        self, value_G: Floats, n_of: str, unit: str, condition: Condition, note: str = ""
    ) -> Score:
        """Mean of independent values."""
        found = ratio_interval(value_G, np.ones_like(value_G), draws=self.draws, seed=self.seed)
        return scored(found, n_of, unit, condition, note)


def scored(found: Interval, n_of: str, unit: str, condition: Condition, note: str = "") -> Score:
    """An interval as a score."""
    return Score(
        value=found.value, n=found.n_groups, n_of=n_of, low=found.low, high=found.high,
        unit=unit, condition=condition, note=note,
    )  # fmt: skip


def numbers(scores: Mapping[str, object]) -> Iterator[tuple[str, float]]:
    """Each score of `scores.json` and the ends of its interval, by a name of its own."""
    for name, score in scores.items():
        if isinstance(score, dict):
            for part, suffix in (("value", ""), ("low", "_low"), ("high", "_high")):
                yield f"{name}{suffix}", float(score[part])
