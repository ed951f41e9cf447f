"""The global order of windows: a shuffle that needs no memory (conformance test 11)."""

import numpy as np
import pytest

from components.order import Mixture, order, permuted


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 65, 1000, 4097])
def test_an_epoch_visits_every_window_once(n):
    found = permuted(np.arange(n), n, seed=5, epoch=2)
    assert sorted(found.tolist()) == list(range(n))


def test_epochs_and_seeds_come_in_other_orders():
    first = permuted(np.arange(100), 100, seed=5, epoch=0)
    assert (first != permuted(np.arange(100), 100, seed=5, epoch=1)).any()
    assert (first != permuted(np.arange(100), 100, seed=6, epoch=0)).any()


def test_neighbours_are_torn_apart():
    found = permuted(np.arange(4096), 4096, seed=1, epoch=0)
    steps = np.abs(np.diff(found))
    assert np.mean(steps == 1) < 0.01
    assert 4096 / 3 * 0.9 < steps.mean() < 4096 / 3 * 1.1  # as for a uniform shuffle


def test_one_place_is_the_same_alone_and_among_others():
    together = permuted(np.arange(37), 37, seed=3, epoch=4).tolist()
    assert [order(37, seed=3, epoch=4, i=i) for i in range(37)] == together


def test_a_place_beyond_the_epoch_is_refused():
    with pytest.raises(ValueError, match="must be in 0 … 6"):
        order(7, seed=0, epoch=0, i=7)


WINDOWS = {"prose": np.arange(0, 5), "code": np.arange(5, 8), "unused": np.arange(8, 20)}


def test_a_mixture_gives_each_domain_its_share():
    mixture = Mixture(WINDOWS, {"prose": 1.0, "code": 3.0})
    found = mixture.windows_at(np.arange(2000), seed=1)
    assert np.sum(found < 5) == 500
    assert np.sum((found >= 5) & (found < 8)) == 1500


def test_a_domain_goes_through_all_its_windows_before_one_comes_again():
    found = Mixture(WINDOWS, {"prose": 1.0, "code": 1.0}).windows_at(np.arange(1000), seed=2)
    # A cycle permutes the places of a domain; over a whole cycle it must come out even.
    assert np.bincount(found[found < 5]).tolist() == [100] * 5
    assert sorted(np.bincount(found[found >= 5])[5:].tolist()) == [166, 167, 167]


def test_a_mixture_can_be_resumed_at_any_place():
    mixture = Mixture(WINDOWS, {"prose": 0.3, "code": 0.7})
    whole = mixture.windows_at(np.arange(40), seed=3)
    assert mixture.windows_at(np.arange(25, 40), seed=3).tolist() == whole[25:].tolist()


def test_a_mixture_of_unknown_domains_is_refused():
    with pytest.raises(ValueError, match=r"\['verse'\].*\['code', 'prose', 'unused'\]"):
        Mixture(WINDOWS, {"verse": 1.0})


def test_a_mixture_of_nothing_is_refused():
    with pytest.raises(ValueError, match="above zero"):
        Mixture(WINDOWS, {"prose": 0.0})
