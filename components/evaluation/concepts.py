"""How well chunks' concepts are recognised: AUROC and average precision, by concept and macro.

Shape suffixes used in this file:
    S held-out chunk   K known concept   L concept with enough positives   G document
    W weighting (bootstrap draw)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.intervals import Interval, intervals
from model.ranking import rank

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Recognition:
    """Scores of the concepts that have enough held-out positives."""

    concept_L: NDArray[np.int64]
    n_positives_L: NDArray[np.int64]
    auroc_L: Floats
    average_precision_L: Floats
    auroc_macro: Interval
    average_precision_macro: Interval


def recognise(
    probability_SK: NDArray[np.float32],
    label_SK: NDArray[np.bool_],
    document_S: NDArray[np.int64],
    *,
    min_positives: int,
    draws: int,
    seed: int,
) -> Recognition:
    """Rank chunks by each concept's probability; intervals resample documents."""
    n_positives_K = label_SK.sum(axis=0)
    n_negatives_K = len(label_SK) - n_positives_K
    concept_L = np.flatnonzero((n_positives_K >= min_positives) & (n_negatives_K > 0))
    if not len(concept_L):
        raise ValueError(
            f"no concept has {min_positives} held-out chunks (the most is "
            f"{int(n_positives_K.max(initial=0))}); hold out more text or lower min_positives"
        )
    _, document_S = np.unique(document_S, return_inverse=True)
    n_documents = int(document_S.max()) + 1

    def both(weight_WG: Floats) -> Floats:
        """AUROC and average precision of each concept (W × L × 2)."""
        weight_SW = np.ascontiguousarray(weight_WG[:, document_S].T, dtype=np.float32)
        rankings = [
            rank(probability_SK[:, concept], label_SK[:, concept], weight_SW)
            for concept in concept_L
        ]
        pairs = [np.stack([one.auroc_W, one.average_precision_W], -1) for one in rankings]
        return np.stack(pairs, axis=1)

    auroc_macro, precision_macro = intervals(
        lambda weight_WG: _mean_of_finite(both(weight_WG)),
        n_documents,
        draws=draws,
        seed=seed,
        cells_per_group=max(1, len(document_S) // n_documents),
    )
    whole_L2 = both(np.ones((1, n_documents)))[0]
    return Recognition(
        concept_L=concept_L,
        n_positives_L=n_positives_K[concept_L],
        auroc_L=whole_L2[:, 0],
        average_precision_L=whole_L2[:, 1],
        auroc_macro=auroc_macro,
        average_precision_macro=precision_macro,
    )


def _mean_of_finite(value_WL2: Floats) -> Floats:
    """Mean over the concepts that a resample left with both kinds of chunks (W × 2)."""
    finite_WL2 = np.isfinite(value_WL2)
    return np.where(finite_WL2, value_WL2, 0.0).sum(axis=1) / np.maximum(1, finite_WL2.sum(axis=1))
