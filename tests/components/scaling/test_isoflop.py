"""IsoFLOP slices: planted optima come back, minima at an edge do not count."""

import numpy as np
import pytest

from components.scaling.isoflop import Slice, fit_exponents, fit_slice

SIZES_N = np.geomspace(1e7, 1e9, 5)


def losses(vertex: float, nats: float) -> np.ndarray:
    return nats + 0.07 * (np.log(SIZES_N) - np.log(vertex)) ** 2


def test_a_vertex_inside_the_sizes_is_found():
    found = fit_slice(1e20, SIZES_N, losses(6e7, 2.9))
    assert not found.problem
    assert found.optimal_parameters == pytest.approx(6e7)
    assert found.optimal_loss_nats == pytest.approx(2.9)
    assert found.curvature == pytest.approx(0.07)


@pytest.mark.parametrize(("vertex", "words"), [(2e6, "smaller ones"), (4e9, "larger ones")])
def test_a_minimum_at_an_edge_does_not_count(vertex: float, words: str):
    assert words in fit_slice(1e20, SIZES_N, losses(vertex, 3.1)).problem


def test_losses_that_curve_downwards_do_not_count():
    assert "no minimum" in fit_slice(1e20, SIZES_N, 6.0 - losses(1e8, 3.0)).problem


def test_two_sizes_are_no_slice():
    assert "2 sizes" in fit_slice(1e20, SIZES_N[:2], np.array([3.1, 3.0])).problem


def test_weights_count_like_repeated_runs():
    noisy_N = losses(8e7, 3.0) + np.random.default_rng(0).normal(0, 0.01, 5)
    times_N = np.array([1, 0, 2, 1, 3])
    counted = fit_slice(1e20, SIZES_N, noisy_N, times_N.astype(float))
    repeated = fit_slice(1e20, np.repeat(SIZES_N, times_N), np.repeat(noisy_N, times_N))
    assert counted.optimal_parameters == pytest.approx(repeated.optimal_parameters)


def test_planted_exponents_are_found():
    budgets = np.geomspace(1e18, 1e21, 4)
    slices = [
        fit_slice(budget, SIZES_N, losses(0.11 * budget**0.45, 40.0 * budget**-0.06))
        for budget in budgets
    ]
    found = fit_exponents(slices)
    assert found is not None
    assert found.parameters == pytest.approx(0.45)
    assert found.loss == pytest.approx(-0.06)


def test_exponents_need_two_budgets_that_count():
    good = fit_slice(1e19, SIZES_N, losses(6e7, 2.9))
    assert fit_exponents([good, Slice(1e20, 0.1, 1e8, 2.5, "at an edge")]) is None
