"""Curves from cosines to probabilities, where the truth is known."""

import numpy as np
import pytest
from scipy.special import expit

from components import calibration
from components.calibration import Labelled
from components.hashing import HashingEmbedder


def drawn(seed: int, n: int, slope: float, intercept: float) -> Labelled:
    """Pairs whose labels follow a logistic curve; two a document."""
    draw = np.random.default_rng(seed)
    cosine_N = draw.uniform(-0.2, 0.8, n)
    applies_N = draw.uniform(size=n) < expit(slope * cosine_N + intercept)
    return Labelled(cosine_N, applies_N, np.arange(n) // 2)


def test_the_curve_that_made_the_labels_is_recovered_and_calibrated() -> None:
    found = calibration.fit(
        drawn(0, 8_000, 12, -3),
        drawn(1, 1_000, 12, -3),
        {"rarer": drawn(3, 1_000, 12, -6)},
        HashingEmbedder(),
        "made-up pairs",
    )
    assert (found.slope, found.intercept) == pytest.approx((12, -3), rel=0.1)
    assert found.error.value < 0.05
    assert found.error.low < found.error.value < found.error.high
    assert found.error.n == 500
    assert found.error_elsewhere["rarer"].low > 0.1


def test_probabilities_off_by_a_tenth_have_an_error_of_a_tenth() -> None:
    pairs = drawn(2, 1_000, 0, 0)
    off_N = np.full(1_000, 0.6)
    assert calibration.error(off_N, pairs).value == pytest.approx(0.1, abs=0.03)


def test_auc_by_hand() -> None:
    pairs = Labelled(
        np.array([0.9, 0.4, 0.6, 0.1]), np.array([True, True, False, False]), np.array([0, 1, 0, 1])
    )
    assert calibration.ranking(pairs.cosine_N, pairs).value == 0.75
