"""What a cosine means to people: a logistic curve fitted to pairs that they labelled.

    probability  =  1 / (1 + exp(−(slope · cosine + intercept)))

Fitted on some documents, measured on others: how well it ranks (AUC) and how far a probability is
from the share that people affirm (calibration error: ten groups of equal size by probability, the
mean over groups of the distance between the two). Half of the pairs are right, so a probability is
that of a pair whose odds were even. `calibrations.json` holds a curve for each encoder, made by
`python -m benchmarks.judging`.

Shape suffixes: N pairs   G documents   Q groups by probability   W weighting (bootstrap draw)
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from components.embedding import Embedder
from components.scores import Score, scored
from model.config import Config
from model.intervals import intervals

Floats = NDArray[np.float64]
FILE = Path(__file__).with_name("calibrations.json")

_GROUPS = 10
_DRAWS = 1000
_NEWTON_STEPS = 25


class CalibrationError(ValueError):
    """An encoder was never compared with people. The message says how to do it."""


class Calibration(Config):
    """A curve, and how it fared on documents that it was not fitted to."""

    encoder_digest: str
    slope: float
    intercept: float
    fitted_on: str
    n_pairs_fitted: int
    auc: Score
    error: Score
    error_elsewhere: dict[str, Score]
    """The same on labels of other kinds, which the curve was not fitted to."""

    def probability(self, cosine_N: NDArray[np.floating]) -> Floats:
        """That a person would say it applies."""
        return np.asarray(expit(self.slope * cosine_N + self.intercept), dtype=np.float64)


@dataclass(frozen=True)
class Labelled:
    """Pairs that people labelled."""

    cosine_N: Floats
    applies_N: NDArray[np.bool_]
    document_N: NDArray[np.int64]
    """Whose passage it is: 0 … G−1."""


def calibrated(encoder: Embedder) -> Calibration:
    """The curve of an encoder. Raises CalibrationError where there is none for its weights."""
    known = {
        name: Calibration.model_validate(said)
        for name, said in json.loads(FILE.read_text()).items()
    }
    found = known.get(encoder.name)
    if found is None or found.encoder_digest != encoder.digest:
        raise CalibrationError(
            f"no judge was calibrated for the encoder {encoder.name} ({encoder.digest[:12]}), only "
            f"for {', '.join(sorted(known))}; judge with one of these, with a language model, or "
            f"run `python -m benchmarks.judging GOLD --encoder {encoder.name}`"
        )
    return found


def fit(
    to_fit: Labelled, held_out: Labelled, elsewhere: Mapping[str, Labelled], encoder: Embedder,
    fitted_on: str,
) -> Calibration:  # fmt: skip
    """The curve of most likelihood, measured on held-out pairs and on those from elsewhere."""
    slope, intercept = _logistic(to_fit.cosine_N, to_fit.applies_N)

    def measured(pairs: Labelled) -> Score:
        return error(np.asarray(expit(slope * pairs.cosine_N + intercept)), pairs)

    return Calibration(
        encoder_digest=encoder.digest, slope=slope, intercept=intercept, fitted_on=fitted_on,
        n_pairs_fitted=len(to_fit.cosine_N),
        auc=ranking(slope * held_out.cosine_N, held_out), error=measured(held_out),
        error_elsewhere={name: measured(pairs) for name, pairs in elsewhere.items()},
    )  # fmt: skip


def error(probability_N: Floats, pairs: Labelled) -> Score:
    """Mean distance between probability and share that applies, in groups of equal size."""
    order_N = np.argsort(probability_N, kind="stable")
    group_N = np.empty(len(order_N), dtype=np.int64)
    group_N[order_N] = np.arange(len(order_N)) * _GROUPS // len(order_N)
    n_documents = int(pairs.document_N.max()) + 1
    gap_GQ = np.zeros((n_documents, _GROUPS))
    np.add.at(gap_GQ, (pairs.document_N, group_N), probability_N - pairs.applies_N)
    n_G1 = np.bincount(pairs.document_N, minlength=n_documents)[:, None].astype(np.float64)

    def mean_gap(weight_WG: Floats) -> Floats:
        return np.abs(weight_WG @ gap_GQ).sum(axis=1, keepdims=True) / (weight_WG @ n_G1)

    found = intervals(mean_gap, n_documents, draws=_DRAWS, seed=0, cells_per_group=_GROUPS)[0]
    note = f"{len(order_N)} held-out pairs, {_GROUPS} groups of equal size by probability"
    return scored(found, "documents", "probability", "interpretation", note)


def ranking(score_N: NDArray[np.floating], pairs: Labelled) -> Score:
    """The chance that a right pair has a higher score than a wrong one."""
    order_N = np.argsort(score_N, kind="stable")
    right_N = pairs.applies_N[order_N].astype(np.float64)
    document_N = pairs.document_N[order_N]
    n_documents = int(pairs.document_N.max()) + 1

    def auc(weight_WG: Floats) -> Floats:
        weight_WN = weight_WG[:, document_N]
        right_WN, wrong_WN = weight_WN * right_N, weight_WN * (1 - right_N)
        below_W = (right_WN * wrong_WN.cumsum(axis=1)).sum(axis=1)
        return (below_W / (right_WN.sum(axis=1) * wrong_WN.sum(axis=1)))[:, None]

    per_document = 1 + len(order_N) // n_documents
    found = intervals(auc, n_documents, draws=_DRAWS, seed=0, cells_per_group=per_document)[0]
    note = f"{len(order_N)} held-out pairs, half of them right"
    return scored(found, "documents", "AUC", "interpretation", note)


def _logistic(cosine_N: Floats, applies_N: NDArray[np.bool_]) -> tuple[float, float]:
    """Slope and intercept of most likelihood, by Newton's method."""
    design_N2 = np.column_stack([cosine_N, np.ones_like(cosine_N)])
    weights = np.zeros(2)
    for _ in range(_NEWTON_STEPS):
        found_N = expit(design_N2 @ weights)
        spread_N = found_N * (1 - found_N)
        gradient = design_N2.T @ (applies_N - found_N)
        curvature = design_N2.T @ (design_N2 * spread_N[:, None])
        weights = weights + np.linalg.solve(curvature, gradient)
    return float(weights[0]), float(weights[1])
