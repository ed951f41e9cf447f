"""Annotators: thresholds meet prevalence, caps hold, and a reloaded one gives the same labels."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from components import annotators
from components.annotators import Annotator, Calibration, Linear, Neighbours


def test_thresholds_meet_the_prevalence_by_hand():
    scores_NK = np.array([[0.1, 5.0], [0.2, 4.0], [0.3, 3.0], [0.4, 2.0]], dtype=np.float32)
    calibration = Calibration.to_prevalence(scores_NK, np.array([0.25, 0.5], dtype=np.float32))
    kept_NK = calibration.probability(scores_NK) >= 0.5
    assert kept_NK.sum(axis=0).tolist() == [1, 2]


def test_calibrated_a_tile_of_concepts_at_a_time_gives_the_same_thresholds(monkeypatch):
    draw = np.random.default_rng(0)
    vectors_ND = draw.normal(size=(40, 5)).astype(np.float32)
    scorer = Linear(draw.normal(size=(7, 5)).astype(np.float32), np.zeros(7, np.float32))
    prevalence_K = np.linspace(0.05, 0.5, 7).astype(np.float32)
    whole = Calibration.to_prevalence(scorer.scores(vectors_ND), prevalence_K)
    monkeypatch.setattr(annotators, "CELLS", 80)
    tiled = Calibration.of(scorer, vectors_ND, prevalence_K)
    np.testing.assert_allclose(tiled.threshold_K, whole.threshold_K, rtol=1e-6)
    np.testing.assert_allclose(tiled.spread_K, whole.spread_K, rtol=1e-6)


def test_nothing_to_calibrate_on_is_refused():
    scorer = Linear(np.eye(2, dtype=np.float32), np.zeros(2, np.float32))
    with pytest.raises(ValueError, match="there are none"):
        Calibration.of(scorer, np.zeros((0, 2), np.float32), np.full(2, 0.5, np.float32))


def test_a_chunk_has_at_least_one_label_and_at_most_the_cap():
    scorer = Linear(np.eye(4, dtype=np.float32), np.zeros(4, dtype=np.float32))
    calibration = Calibration(np.full(4, 0.5, np.float32), np.ones(4, np.float32))
    found = Annotator(scorer, calibration, max_labels=2).label(
        np.array([[0.1, 0.2, 0.3, 0.0], [0.9, 0.8, 0.7, 0.6]], dtype=np.float32)
    )
    assert [[concept for concept, _ in labels] for labels in found] == [[2], [0, 1]]


def test_labels_do_not_depend_on_how_chunks_are_tiled(monkeypatch):
    draw = np.random.default_rng(1)
    vectors_ND = draw.normal(size=(9, 5)).astype(np.float32)
    scorer = Linear(draw.normal(size=(6, 5)).astype(np.float32), np.zeros(6, np.float32))
    calibration = Calibration(np.zeros(6, np.float32), np.ones(6, np.float32))
    annotator = Annotator(scorer, calibration, max_labels=3)
    whole = annotator.label(vectors_ND)
    monkeypatch.setattr(annotators, "CELLS", 12)
    assert [[c for c, _ in labels] for labels in annotator.label(vectors_ND)] == [
        [c for c, _ in labels] for labels in whole
    ]
    assert annotator.label(vectors_ND[:0]) == []


@pytest.mark.parametrize("kind", ["neighbours", "trained"])
def test_a_reloaded_annotator_gives_the_same_labels(kind, tmp_path):
    draw = np.random.default_rng(0)
    vectors_ND = draw.normal(size=(6, 5)).astype(np.float32)
    if kind == "trained":
        scorer = Linear(draw.normal(size=(3, 5)).astype(np.float32), np.zeros(3, np.float32))
    else:
        labels_PK = csr_array(np.eye(4, 3, dtype=np.float32))
        scorer = Neighbours(vectors_ND[:4], labels_PK, n_neighbours=2)
    calibration = Calibration.to_prevalence(scorer.scores(vectors_ND), np.full(3, 0.3, np.float32))
    made = Annotator(scorer, calibration, max_labels=2, encoder="hashing")
    annotators.save(made, tmp_path, kind, {"n_neighbours": 2, "encoder": "hashing"})
    again = annotators.load(tmp_path)
    assert again.label(vectors_ND) == made.label(vectors_ND)
    assert again.encoder == "hashing"


def test_neighbours_vote_by_similarity_by_hand():
    tagged_PD = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], dtype=np.float32)
    labels_PK = csr_array(np.array([[1, 0], [0, 1], [0, 1]], dtype=np.float32))
    scorer = Neighbours(tagged_PD, labels_PK, n_neighbours=2)
    query_ND = np.array([[1.0, 0.0]], dtype=np.float32)
    np.testing.assert_allclose(scorer.scores(query_ND), [[1.0 / 1.6, 0.6 / 1.6]], rtol=1e-6)
    np.testing.assert_allclose(scorer.scores(query_ND, slice(1, 2)), [[0.6 / 1.6]], rtol=1e-6)
