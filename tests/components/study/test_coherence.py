"""Agreement by hand, and recovered from raters whose variances are known."""

import numpy as np
import pytest

from components.study.coherence import anova, coherence
from components.study.ratings import Ratings
from tests.components.study.simulated import rated


def ratings_of(*by_concept):
    rater_N = np.concatenate([np.arange(len(values)) for values in by_concept])
    concept_N = np.repeat(np.arange(len(by_concept)), [len(values) for values in by_concept])
    value_N = np.concatenate(by_concept).astype(np.float64)
    return Ratings(rater_N, concept_N, value_N, tuple(range(len(by_concept))))


def test_icc_by_hand():
    # Means 1, 4, 3 about 8/3; MSB = 2·(25+16+1)/9/2 = 14/3, MSW = (0 + 2 + 0)/3, k̄ = 2.
    ratings = ratings_of([1, 1], [3, 5], [3, 3])
    icc, within, overall, mean = anova(ratings, np.ones((1, 3)))[0]
    assert icc == pytest.approx((14 / 3 - 2 / 3) / (14 / 3 + 2 / 3))
    assert within == pytest.approx((2 / 3) ** 0.5)
    assert overall == pytest.approx(np.std([1, 1, 3, 5, 3, 3], ddof=1))
    assert mean == pytest.approx(8 / 3)


def test_a_concept_drawn_twice_counts_as_two():
    ratings = ratings_of([1, 2], [4, 4, 5])
    twice = ratings_of([1, 2], [4, 4, 5], [4, 4, 5])
    weighted = anova(ratings, np.array([[1.0, 2.0]]))
    np.testing.assert_allclose(weighted, anova(twice, np.ones((1, 3))))


def test_shares_and_unanimity_by_hand():
    figures = coherence(ratings_of([4, 5], [3, 3], [1, 2], [5, 5]), draws=10_000, seed=0)
    values = {name: figure.value for name, figure in figures.items()}
    assert values["recognisable"] == 4 / 8
    assert values["borderline"] == 2 / 8
    assert values["incoherent"] == 2 / 8
    assert values["unanimous"] == 2 / 4
    assert values["mean_coherence"] == 28 / 8
    assert figures["unanimous"].n == 4


def test_the_planted_icc_lies_in_its_interval():
    # 0.9² between, 0.9² within: half of the variance is between concepts.
    planted = rated(
        80, 4, effects={"words": 0.0}, seed=3, concept_sd=0.9, rater_sd=0.0, error_sd=0.9,
        on_the_scale=False,
    )  # fmt: skip
    icc = coherence(planted["words"], draws=10_000, seed=0)["icc1"]
    assert icc.low < 0.5 < icc.high
    assert icc.high - icc.low < 0.35
    assert icc.n == 320


def test_raters_who_agree_in_everything_have_an_icc_of_one():
    figures = coherence(ratings_of([1, 1], [3, 3], [5, 5]), draws=10_000, seed=0)
    assert figures["icc1"].value == 1


def test_a_single_rating_of_each_concept_says_nothing_of_agreement():
    assert "icc1" not in coherence(ratings_of([1], [3], [5]), draws=10_000, seed=0)


@pytest.mark.slow
def test_the_interval_of_the_icc_covers_nine_times_in_ten():
    covered = 0
    for seed in range(100):
        planted = rated(
            60, 4, effects={"words": 0.0}, seed=seed, concept_sd=0.7, rater_sd=0.0, error_sd=0.9,
            on_the_scale=False,
        )  # fmt: skip
        icc = coherence(planted["words"], draws=10_000, seed=0)["icc1"]
        covered += icc.low < 0.49 / (0.49 + 0.81) < icc.high
    assert covered >= 88
