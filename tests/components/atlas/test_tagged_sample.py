"""The tagged sample and the pool: the same whatever order chunks come in."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from components.atlas import tagged_sample
from components.atlas.tagged_sample import Tagged


def test_order_and_pool_do_not_depend_on_the_order_of_the_corpus():
    draw = np.random.default_rng(0)
    vectors_ND = draw.normal(size=(11, 6)).astype(np.float16)
    labels_PK = csr_array(np.eye(5, 3, dtype=np.float32))
    sample = Tagged(np.arange(5), labels_PK, np.arange(5) > 2)
    places = draw.permutation(11)
    moved_ND = vectors_ND[places]
    where = np.argsort(places)
    shuffled = draw.permutation(5)
    moved = Tagged(where[:5][shuffled], labels_PK[shuffled], sample.held_out_P[shuffled])
    one, other = tagged_sample.ordered(sample, vectors_ND), tagged_sample.ordered(moved, moved_ND)
    assert (vectors_ND[one.rows_P] == moved_ND[other.rows_P]).all()
    assert (one.labels_PK.toarray() == other.labels_PK.toarray()).all()
    assert (one.held_out_P == other.held_out_P).all()
    pools = vectors_ND[tagged_sample.pool(vectors_ND, 7)], moved_ND[tagged_sample.pool(moved_ND, 7)]
    assert (pools[0] == pools[1]).all()


def test_chunks_of_one_vector_are_ordered_by_their_concepts():
    vectors_ND = np.ones((2, 4), dtype=np.float16)
    labels_PK = csr_array(np.array([[1, 0, 1], [0, 1, 0]], dtype=np.float32))
    one = tagged_sample.ordered(Tagged(np.array([0, 1]), labels_PK, np.zeros(2, bool)), vectors_ND)
    other = tagged_sample.ordered(
        Tagged(np.array([0, 1]), labels_PK[[1, 0]], np.zeros(2, bool)), vectors_ND
    )
    assert (one.labels_PK.toarray() == other.labels_PK.toarray()).all()


def test_a_label_said_twice_counts_once():
    found = tagged_sample.table_of(np.array([0, 0, 1]), np.array([2, 2, 0]), n_rows=2, n_concepts=3)
    assert found.toarray().tolist() == [[0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize("held_out", [[], [0, 1]])
def test_a_sample_that_cannot_be_compared_on_is_refused(held_out):
    sample = Tagged(np.arange(2), csr_array(np.eye(2)), np.isin(np.arange(2), held_out))
    with pytest.raises(ValueError, match="raise n_held_out or n_train"):
        sample.split()
