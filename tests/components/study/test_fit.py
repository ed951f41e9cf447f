"""What pairs say, by hand and recovered from raters with known preferences."""

import numpy as np
import pytest
from scipy.stats import norm

from components.study.config import AnalyseConfig
from components.study.fit import advantage, by_coherence, correlations, superiority
from components.study.ratings import Pairs, Ratings, paired
from tests.components.study.simulated import pairs_of, rated

CONFIG = AnalyseConfig()


def of(rater, concept, value, n_concepts=3):
    value_N = np.array(value, dtype=np.float64)
    return Ratings(np.array(rater), np.array(concept), value_N, tuple(range(n_concepts)))


def test_superiority_counts_ties_half_by_hand():
    first = of([0, 1, 0, 0], [0, 0, 1, 2], [5, 3, 2, 4])
    second = of([0, 1, 0, 0], [0, 0, 1, 2], [4, 3, 4, 4])
    found = superiority(Pairs(first, second), CONFIG)
    assert found.value == (1 + 0.5 + 0 + 0.5) / 4
    assert (found.n, found.n_of) == (4, "pairs")


def test_only_raters_of_both_names_make_pairs():
    fits = {
        "pipeline": of([0, 1, 2], [0, 0, 1], [5, 4, 3]),
        "human": of([2, 1, 1], [1, 0, 2], [1, 2, 5]),
    }
    pairs = paired(fits)
    assert pairs.difference_N.tolist() == [4 - 2, 3 - 1]
    assert pairs.first.concept_N.tolist() == [0, 1]


def test_planted_difference_and_superiority_lie_in_their_intervals():
    planted = pairs_of(
        rated(90, 4, effects={"pipeline": 0.5, "human": 0.0}, seed=1, on_the_scale=False)
    )
    difference, above = advantage(planted, CONFIG), superiority(planted, CONFIG)
    assert difference.low < 0.5 < difference.high
    assert above.low < norm.cdf(0.5 / (0.6 * 2**0.5)) < above.high
    assert above.high - above.low < 0.12


def test_an_interval_is_wider_where_the_ratings_of_a_concept_go_together():
    independent = rated(40, 5, effects={"pipeline": 0.4, "human": 0.0}, seed=2)
    together = rated(
        40, 5, effects={"pipeline": 0.4, "human": 0.0}, seed=2, name_sd=0.7, error_sd=0.1
    )
    widths = [
        found.high - found.low
        for found in (advantage(pairs_of(each), CONFIG) for each in (independent, together))
    ]
    assert widths[1] > 1.3 * widths[0]


def test_bins_follow_the_coherence_of_phase_one_by_hand():
    first = of([0] * 7, range(7), [5, 5, 5, 4, 4, 4, 3], n_concepts=7)
    second = of([0] * 7, range(7), [4, 4, 4, 4, 4, 4, 5], n_concepts=7)
    coherence = dict.fromkeys(range(3), 2.4) | {3: 2.5, 4: 3.4, 5: 3.0, 6: 3.5}
    found = by_coherence(Pairs(first, second), coherence, CONFIG)
    assert {name: figure.value for name, figure in found.items()} == {
        "advantage_low": 1.0, "advantage_middle": 0.0,
    }  # fmt: skip
    assert found["advantage_low"].note == "3 concepts"


def test_a_correlation_by_hand():
    fits = {"pipeline": of([0, 1, 0, 0, 0], [0, 0, 1, 2, 3], [1, 3, 3, 5, 1], n_concepts=4)}
    coherence = {0: 1.0, 1: 2.0, 2: 4.0}
    found = correlations(fits, coherence, CONFIG)["coherence_to_fit_pipeline"]
    assert found.value == pytest.approx(np.corrcoef([1, 2, 4], [2, 3, 5])[0, 1])
    assert found.n == 3


@pytest.mark.slow
def test_the_interval_of_the_superiority_covers_as_often_as_it_says():
    true = norm.cdf(0.3 / (0.6 * 2**0.5))
    covered = 0
    for seed in range(100):
        planted = rated(60, 4, effects={"pipeline": 0.3, "human": 0.0}, seed=seed,
                        on_the_scale=False)  # fmt: skip
        found = superiority(pairs_of(planted), CONFIG)
        covered += found.low < true < found.high
    assert covered >= 88
