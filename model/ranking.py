"""AUROC and average precision under many weightings of the rows at once.

Ties count half in AUROC; average precision reads a run of ties as one threshold. Weights are
counts, which float32 adds up exactly as long as they stay under sixteen million.

Shape suffixes used in this file:
    W weighting   N rows, best score first   P positive rows among them
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Ranking:
    """How well scores put positives before negatives; NaN where a weighting has one kind only."""

    auroc_W: NDArray[np.float64]
    average_precision_W: NDArray[np.float64]


def rank(
    score_N: NDArray[np.float32], positive_N: NDArray[np.bool_], weight_NW: NDArray[np.float32]
) -> Ranking:
    """Both readings of one ranking, for each weighting."""
    order_N = np.argsort(-score_N, kind="stable")
    score_N, at_P = score_N[order_N], np.flatnonzero(positive_N[order_N])
    weight_NW = weight_NW[order_N]
    weight_PW = weight_NW[at_P]

    # Weight before and through the run of ties that each positive stands in, of all rows and of
    # the positives among them; a row of zeros in front stands for "nothing before".
    first_P = np.searchsorted(-score_N, -score_N[at_P], side="left")
    end_P = np.searchsorted(-score_N, -score_N[at_P], side="right")
    all_NW = _running(weight_NW)
    positive_PW = _running(weight_PW)
    before_PW = positive_PW[np.searchsorted(at_P, first_P)]
    through_PW = positive_PW[np.searchsorted(at_P, end_P)]
    all_through_PW = all_NW[end_P]
    above_PW = (all_NW[first_P] - before_PW + all_through_PW - through_PW) / 2

    n_positive_W = positive_PW[-1].astype(np.float64)
    n_negative_W = all_NW[-1] - n_positive_W
    with np.errstate(invalid="ignore", divide="ignore"):
        lost_W = np.einsum("pw,pw->w", weight_PW, above_PW, dtype=np.float64)
        auroc_W = 1 - lost_W / (n_positive_W * n_negative_W)
        precision_PW = through_PW / np.maximum(all_through_PW, 1e-30)
        found_W = np.einsum("pw,pw->w", weight_PW, precision_PW, dtype=np.float64)
        average_W = found_W / n_positive_W
    return Ranking(auroc_W, average_W)


def _running(weight_NW: NDArray[np.float32]) -> NDArray[np.float32]:
    """Running sums down the rows, with a row of zeros in front."""
    total_NW = np.zeros((len(weight_NW) + 1, weight_NW.shape[1]), dtype=np.float32)
    np.cumsum(weight_NW, axis=0, out=total_NW[1:])
    return total_NW
