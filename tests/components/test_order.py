"""The global order of windows: a shuffle that needs no memory (conformance test 11)."""

import tracemalloc

import numpy as np
import pytest

from components.order import CYCLE, Mixture, Single, order, permuted, place_of


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


@pytest.mark.parametrize("n", [1, 2, 37, 250_000_000])
def test_a_window_s_place_is_found_without_searching(n):
    for element in {0, n // 3, n - 1}:
        place = place_of(n, seed=3, epoch=4, element=element)
        assert order(n, seed=3, epoch=4, i=place) == element


def test_a_place_beyond_the_epoch_is_refused():
    with pytest.raises(ValueError, match="must be in 0 … 6"):
        order(7, seed=0, epoch=0, i=7)


SIZES = {"code": 3, "prose": 5, "unused": 12}


def test_a_mixture_gives_each_source_its_share():
    found = Mixture(SIZES, {"prose": 1.0, "code": 3.0}).at(np.arange(2 * CYCLE), seed=1)
    assert np.bincount(found.source_N).tolist() == [1500, 500]


def test_a_source_goes_through_all_its_windows_before_one_comes_again():
    found = Mixture(SIZES, {"prose": 1.0, "code": 1.0}).at(np.arange(CYCLE), seed=2)
    # A cycle permutes the places of a source; over a whole cycle it must come out even.
    assert np.bincount(found.element_N[found.source_N == 1]).tolist() == [100] * 5
    assert sorted(np.bincount(found.element_N[found.source_N == 0])) == [166, 167, 167]


def test_a_mixture_can_be_resumed_at_any_place():
    mixture = Mixture(SIZES, {"prose": 0.3, "code": 0.7})
    whole = mixture.at(np.arange(40), seed=3)
    assert mixture.at(np.arange(25, 40), seed=3).element_N.tolist() == whole.element_N[25:].tolist()


@pytest.mark.parametrize("n_places", [0, 1, 7, CYCLE - 1, CYCLE, CYCLE + 4, 3 * CYCLE + 617])
@pytest.mark.parametrize(
    "drawn",
    [Single("prose", 5), Mixture(SIZES, {"prose": 0.34, "code": 0.61, "unused": 0.05})],
    ids=["single", "mixture"],
)
def test_what_sources_gave_is_known_without_counting(drawn, n_places):
    found = drawn.at(np.arange(n_places), seed=8)
    sizes = {**SIZES, "prose": 5}
    for k, (name, given) in enumerate(zip(drawn.names, drawn.given(n_places, 8), strict=True)):
        elements = found.element_N[found.source_N == k]
        assert given.n_elements == len(elements)
        assert given.n_last == (elements == sizes[name] - 1).sum()


def test_a_mixture_of_unknown_sources_is_refused():
    with pytest.raises(ValueError, match=r"\['verse'\].*\['code', 'prose', 'unused'\]"):
        Mixture(SIZES, {"verse": 1.0})


def test_a_mixture_of_nothing_is_refused():
    with pytest.raises(ValueError, match="above zero"):
        Mixture(SIZES, {"prose": 0.0})


def test_a_weight_too_small_to_come_at_all_is_refused():
    with pytest.raises(ValueError, match=r"\{'code': 0.0001\}.*never come"):
        Mixture(SIZES, {"prose": 1.0, "code": 0.0001})


def test_a_quarter_of_a_billion_windows_are_shuffled_in_no_memory():
    mixture = Mixture({"web": 244_140_625, "code": 31_250_000}, {"web": 0.8, "code": 0.2})
    mixture.at(np.arange(64), seed=1)
    tracemalloc.start()
    found = mixture.at(np.arange(10**9, 10**9 + 64), seed=1)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(np.unique(found.element_N)) == 64
    assert most_bytes < 100_000
