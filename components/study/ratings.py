"""Ratings as arrays, and sums of them by concept: what every figure of a study is made of.

Shape suffixes: N rows   C concept of the study   W weighting (bootstrap draw)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from components import contracts
from components.study.sheets import HUMAN, KINDS, PIPELINE

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Ratings:
    """Ratings of one kind of thing. Raters and concepts are numbered 0 … n − 1."""

    rater_N: Integers
    concept_N: Integers
    value_N: Floats
    concept_ids: tuple[int, ...]
    """What the concepts' numbers stand for."""

    @property
    def n(self) -> int:
        return len(self.value_N)

    @property
    def n_concepts(self) -> int:
        return len(self.concept_ids)

    def by_concept(self, value_N: Floats) -> Floats:
        """Sums over the ratings of each concept."""
        sums_C = np.bincount(self.concept_N, weights=value_N, minlength=self.n_concepts)
        return sums_C.astype(np.float64)

    @property
    def count_C(self) -> Floats:
        return self.by_concept(np.ones(self.n, dtype=np.float64))

    @property
    def mean_C(self) -> Floats:
        """Mean rating of each concept; not a number where there is none."""
        with np.errstate(invalid="ignore"):
            return self.by_concept(self.value_N) / self.count_C


@dataclass(frozen=True)
class Pairs:
    """Two names of one concept, rated by one rater; numbering as in `Ratings`."""

    first: Ratings
    second: Ratings

    @property
    def difference_N(self) -> Floats:
        return self.first.value_N - self.second.value_N


def read(answers: Path) -> dict[str, Ratings]:
    """Ratings by kind. Concepts are numbered alike in all kinds, and so are raters."""
    rows = contracts.read(answers, contracts.ANSWERS).to_pylist()
    concept_ids = tuple(sorted({row["concept_id"] for row in rows}))
    rater_ids = sorted({row["rater_id"] for row in rows})
    concept_of = {concept_id: c for c, concept_id in enumerate(concept_ids)}
    rater_of = {rater_id: g for g, rater_id in enumerate(rater_ids)}
    found = {}
    present = {row["kind"] for row in rows}
    for kind in (kind for kind in KINDS if kind in present):
        own = [row for row in rows if row["kind"] == kind]
        found[kind] = Ratings(
            np.array([rater_of[row["rater_id"]] for row in own], dtype=np.int64),
            np.array([concept_of[row["concept_id"]] for row in own], dtype=np.int64),
            np.array([row["rating"] for row in own], dtype=np.float64),
            concept_ids,
        )
    return found


def paired(fits: dict[str, Ratings], first: str = PIPELINE, second: str = HUMAN) -> Pairs:
    """Ratings by raters who rated both names of a concept; the others are left out."""
    one, other = _by_place(fits[first]), _by_place(fits[second])
    both = sorted(one.keys() & other.keys())
    return Pairs(_chosen(fits[first], [one[at] for at in both]),
                 _chosen(fits[second], [other[at] for at in both]))  # fmt: skip


def _by_place(ratings: Ratings) -> dict[tuple[int, int], int]:
    places = zip(ratings.concept_N.tolist(), ratings.rater_N.tolist(), strict=True)
    return {place: row for row, place in enumerate(places)}


def _chosen(ratings: Ratings, rows: Sequence[int]) -> Ratings:
    rows_N = np.array(rows, dtype=np.int64)
    return Ratings(ratings.rater_N[rows_N], ratings.concept_N[rows_N], ratings.value_N[rows_N],
                   ratings.concept_ids)  # fmt: skip
