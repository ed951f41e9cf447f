"""Shares of chunks found, by hand."""

import numpy as np

from components.index import measuring
from components.index.config import BuildConfig
from components.index.overlap import by_overlap

CONFIG = BuildConfig(length=8, bootstrap_draws=50)
DOCUMENTS = np.array(["a", "a", "b"])


def test_a_chunk_counts_as_found_from_its_rank_on() -> None:
    found_NK = np.array([[7, 1, 2], [4, 5, 6], [0, 1, 9]])
    recall = measuring.recall_of_own(found_NK, np.array([7, 9, 9]), DOCUMENTS, 20, CONFIG)
    assert (recall.at_1.value, recall.at_10.value) == (1 / 3, 2 / 3)
    assert (recall.at_1.n, recall.at_1.n_groups, recall.chance_at_1) == (3, 2, 0.05)
    assert recall.at_10.low >= 0.0
    assert recall.at_10.high <= 1.0


def test_where_nothing_or_all_was_found_the_interval_is_that_of_as_many_documents() -> None:
    found_NK = np.array([[7], [4], [9]])
    none = measuring.recall_of_own(found_NK, np.array([1, 1, 1]), DOCUMENTS, 20, CONFIG).at_1
    every = measuring.recall_of_own(found_NK, found_NK[:, 0], DOCUMENTS, 20, CONFIG).at_1
    assert (none.value, none.low, every.value, every.high) == (0.0, 0.0, 1.0, 1.0)
    np.testing.assert_allclose([(1 - none.high) ** 2, every.low**2], 0.025)


def test_true_neighbours_are_counted_among_as_many_found() -> None:
    true_NK = np.arange(100)[None].repeat(3, axis=0)
    found_NK = true_NK.copy()
    found_NK[0, :10] = true_NK[0, :10][::-1]
    found_NK[1, 5] = 700
    recall = measuring.recall_of_true(found_NK, true_NK, DOCUMENTS, 800, CONFIG)
    assert recall.at_1.value == 2 / 3
    np.testing.assert_allclose([recall.at_10.value, recall.at_100.value], [2.9 / 3, 2.99 / 3])


def test_rare_tokens_find_more_than_frequent_ones_and_order_counts_for_nothing() -> None:
    rows = [np.array(ids) for ids in ([1, 1, 2], [1, 3, 1], [1, 4, 1, 1, 1, 1], [5])]
    found = by_overlap(rows, [np.array([3, 1]), np.array([1, 4]), np.array([6])], 7, k=2)
    assert found[:2, 0].tolist() == [1, 2]
    assert found[2].tolist() == [0, 1]  # nothing shared: the rows as they are
