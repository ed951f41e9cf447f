"""Bootstrap intervals: groups are drawn whole, and the draws do not depend on memory."""

import numpy as np
import pytest

from model import intervals
from model.intervals import by_group, ratio_interval


def test_the_value_is_the_ratio_of_the_sums():
    found = ratio_interval(np.array([1.0, 6.0]), np.array([2.0, 3.0]), draws=50, seed=0)
    assert found.value == pytest.approx(7 / 5)


def test_two_groups_span_their_own_values():
    found = ratio_interval(np.array([1.0, 3.0]), np.array([1.0, 1.0]), draws=4000, seed=0)
    assert found.low == pytest.approx(1.0, abs=0.1)
    assert found.high == pytest.approx(3.0, abs=0.1)


def test_intervals_are_freed_from_the_bias_of_resampling():
    """The largest of ten values is never larger in a resample, and often smaller."""
    value_G = np.arange(10.0)

    def largest(weight_WG: np.ndarray) -> np.ndarray:
        return np.where(weight_WG > 0, value_G, 0.0).max(axis=1, keepdims=True)

    (found,) = intervals.intervals(largest, 10, draws=500, seed=0)
    assert found.low < found.value < found.high


def test_groups_without_a_token_are_not_counted():
    found = ratio_interval(np.array([1.0, 0.0, 3.0]), np.array([1.0, 0.0, 1.0]), draws=9, seed=0)
    assert found.n_groups == 2


def test_the_interval_has_the_width_of_the_theory():
    value_G = np.random.default_rng(1).normal(5.0, 2.0, 400)
    found = ratio_interval(value_G, np.ones(400), draws=2000, seed=0)
    margin = 1.96 * value_G.std() / 20
    assert found.high - found.low == pytest.approx(2 * margin, rel=0.08)


def test_draws_do_not_depend_on_how_many_fit_at_once(monkeypatch):
    above_G, below_G = np.arange(7.0), np.arange(7.0) + 2
    whole = ratio_interval(above_G, below_G, draws=30, seed=3)
    monkeypatch.setattr(intervals, "CELLS_AT_ONCE", 25)
    assert ratio_interval(above_G, below_G, draws=30, seed=3) == whole


def test_a_statistic_that_never_gives_a_number_is_refused():
    with pytest.raises(ValueError, match="none of 5 resamples of 3 groups"):
        intervals.intervals(lambda weight_WG: weight_WG[:, :1] * np.nan, 3, draws=5, seed=0)


def test_rows_are_added_to_their_groups():
    assert by_group(np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), 4).tolist() == [2, 0, 5, 0]


def test_a_share_that_went_one_way_has_the_interval_of_the_binomial() -> None:
    low, high = intervals.all_alike(all_right=False, n=15)
    assert low == 0.0
    assert (1 - high) ** 15 == pytest.approx(0.025)
    assert intervals.all_alike(all_right=True, n=15) == pytest.approx((1 - high, 1.0))
