"""Clusters and neighbours of unit vectors."""

from pathlib import Path

import numpy as np
import pytest

from components import nearest


def some_vectors(n: int, width: int, seed: int = 0) -> nearest.Floats:
    return np.random.default_rng(seed).normal(size=(n, width)).astype(np.float32)


def test_kmeans_separates_two_directions_whatever_the_lengths() -> None:
    vectors_ND = np.array([[1, 0.1], [5, 0.2], [0.1, 2], [0.1, 0.5], [9, 0.1]], dtype=np.float32)
    centroids_KD, cluster_N = nearest.kmeans(vectors_ND, k=2, seed=3)
    assert cluster_N[0] == cluster_N[1] == cluster_N[4] != cluster_N[2] == cluster_N[3]
    np.testing.assert_allclose(np.linalg.norm(centroids_KD, axis=1), 1.0, rtol=1e-6)


def test_kmeans_gives_the_same_bytes_twice() -> None:
    vectors_ND = some_vectors(211, 7)
    first, second = (nearest.kmeans(vectors_ND, k=13, seed=5) for _ in range(2))
    assert first[0].tobytes() == second[0].tobytes()
    assert first[1].tobytes() == second[1].tobytes()


def test_every_row_lies_in_its_nearest_cluster() -> None:
    vectors_ND = nearest.unit(some_vectors(101, 6))
    centroids_KD, cluster_N = nearest.kmeans(vectors_ND, k=9, seed=1)
    assert cluster_N.tolist() == (vectors_ND @ centroids_KD.T).argmax(axis=1).tolist()


def test_more_clusters_than_vectors_is_refused_with_the_limit() -> None:
    with pytest.raises(ValueError, match=r"k is 4 but there are 3 vectors.*1\.\.3"):
        nearest.kmeans(some_vectors(3, 5), k=4, seed=0)


def test_search_ranks_by_cosine_not_by_length() -> None:
    vectors_ND = np.array([[100.0, 100.0], [0.1, 0.0], [0.0, 7.0]], dtype=np.float32)
    found = nearest.search(vectors_ND, np.array([[3.0, 0.0]], dtype=np.float32), k=3)
    assert found.rows_QK.tolist() == [[1, 0, 2]]
    np.testing.assert_allclose(found.cosine_QK, [[1.0, 2**-0.5, 0.0]], atol=1e-6)


def test_few_vectors_are_searched_exactly_and_many_by_lists_that_reach_the_recall() -> None:
    vectors_ND = some_vectors(700, 8)
    few = nearest.build(vectors_ND, exact_up_to=700, least_recall=0.9, seed=2)
    many = nearest.build(vectors_ND, exact_up_to=699, least_recall=0.9, seed=2)
    assert (few.kind, many.kind) == ("Flat", "IVF17,Flat")
    true_rows_QK = few.search(vectors_ND, 10).rows_QK
    assert nearest.recall(many.search(vectors_ND, 10), true_rows_QK) > 0.85


def test_a_saved_index_answers_as_before(tmp_path: Path) -> None:
    vectors_ND = some_vectors(300, 5)
    index = nearest.build(vectors_ND, exact_up_to=10, least_recall=0.8, seed=4)
    index.save(tmp_path / "index.faiss")
    again = nearest.load(tmp_path / "index.faiss", index.kind)
    before, after = index.search(vectors_ND, 3), again.search(vectors_ND, 3)
    assert (again.n, again.width) == (300, 5)
    assert before.rows_QK.tolist() == after.rows_QK.tolist()


def test_recall_counts_true_neighbours_that_were_found() -> None:
    found = nearest.Neighbours(np.zeros((2, 2), np.float32), np.array([[4, 1], [2, 0]]))
    assert nearest.recall(found, np.array([[1, 3], [2, 0]])) == 0.75


def test_queries_of_another_encoder_are_refused() -> None:
    index = nearest.build(some_vectors(4, 6), exact_up_to=9, least_recall=1.0, seed=0)
    with pytest.raises(ValueError, match=r"queries are 5 wide .* width 6"):
        index.search(some_vectors(1, 5), 1)


def test_a_query_that_is_not_a_number_is_refused_by_its_row() -> None:
    index = nearest.build(some_vectors(4, 6), exact_up_to=9, least_recall=1.0, seed=0)
    queries_QD = some_vectors(3, 6)
    queries_QD[1, 2] = np.nan
    with pytest.raises(ValueError, match="query 1 of 3 holds NaN"):
        index.search(queries_QD, 1)


def test_more_neighbours_than_rows_are_filled_up_with_no_row() -> None:
    index = nearest.build(some_vectors(2, 6), exact_up_to=9, least_recall=1.0, seed=0)
    assert (index.search(some_vectors(1, 6), 5).rows_QK[0, 2:] == -1).all()
    with pytest.raises(ValueError, match="k is 0"):
        index.search(some_vectors(1, 6), 0)
