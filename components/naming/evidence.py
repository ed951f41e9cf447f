"""The chunks that a name is found from, and those that it is tested on: of other documents.

Shape suffixes: C chunk of the scan   U unknown concept
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from components.naming.config import NameConfig
from components.naming.scan import Scan
from components.order import Integers


@dataclass(frozen=True)
class Sides:
    """Rows of the scan that activate a concept, and rows that hardly do."""

    active: Integers
    """Strongest first."""

    others: Integers


@dataclass(frozen=True)
class Evidence:
    """What is known of one concept."""

    concept_id: int
    found_on: Sides
    tested_on: Sides
    half: Integers
    """Rows that activate it about half as much as the strongest, of documents a name is found
    from."""

    n_activating: int
    """Chunks of the scan in which it is active at all."""

    share: float
    """Of all that unknown concepts contribute."""


def gathered(scan: Scan, config: NameConfig) -> list[Evidence]:
    """Evidence on the concepts that contribute most, the largest first."""
    total = float(scan.contribution_U.sum())
    first_C = _documents_to_find_in(scan, config.seed)
    found: list[Evidence] = []
    for concept in np.argsort(-scan.contribution_U, kind="stable").tolist():
        if len(found) == config.n_named or scan.contribution_U[concept] == 0:
            break
        active_C = scan.activation_CU[:, [concept]].toarray()[:, 0]
        sides = [
            _sides(active_C, side_C, config, seed=2 * concept + n)
            for n, side_C in enumerate((first_C, ~first_C))
        ]
        if min(len(side.active) for side in sides) < config.least_activating:
            continue
        share = float(scan.contribution_U[concept]) / total
        half = _half(active_C, first_C, sides[0].active)
        n_activating = int((active_C > 0).sum())
        found.append(Evidence(concept, sides[0], sides[1], half, n_activating, share))
    return found


def _documents_to_find_in(scan: Scan, seed: int) -> NDArray[np.bool_]:
    """Whether a chunk's document is one that names are found from: half of them."""
    documents, number_C = np.unique(scan.doc_id_C, return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(documents))
    return np.asarray((order < len(documents) / 2)[number_C])


def _sides(
    active_C: NDArray[np.float64], side_C: NDArray[np.bool_], config: NameConfig, seed: int
) -> Sides:
    """The strongest rows of one side, and others drawn from its weaker half."""
    rows = np.flatnonzero(side_C)
    ranked = rows[np.argsort(-active_C[rows], kind="stable")]
    n_active = min(config.n_activating, len(rows) // 4, int((active_C[rows] > 0).sum()))
    weaker = np.sort(ranked[len(ranked) // 2 :])
    drawn = np.random.default_rng([config.seed, seed]).permutation(weaker)[: config.n_others]
    return Sides(ranked[:n_active], np.sort(drawn))


def _half(
    active_C: NDArray[np.float64], side_C: NDArray[np.bool_], strongest: Integers
) -> Integers:
    """Rows nearest to half the largest activation, as many as the strongest and none of them."""
    rows = np.setdiff1d(np.flatnonzero(side_C & (active_C > 0)), strongest)
    target = active_C[strongest].max(initial=0.0) / 2
    return rows[np.argsort(np.abs(active_C[rows] - target), kind="stable")][: len(strongest)]
