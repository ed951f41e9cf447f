"""Rankings, by hand: of a chunk's concepts, of a concept's chunks, of all pairs."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from components import annotators
from components.annotators import Calibration, Linear
from components.atlas import ranked
from components.atlas.ranked import Held, Judged

SCORES_HK = np.array([[0.9, 0.8, 0.7], [0.1, 0.6, 0.5], [0.3, 0.2, 0.4]], dtype=np.float32)
LABELS_HK = np.array([[1, 0, 1], [0, 0, 1], [0, 0, 0]], dtype=np.float32)


@pytest.fixture
def judged() -> Judged:
    """Scores are the vectors themselves, thresholds at zero."""
    scorer = Linear(np.eye(3, dtype=np.float32), np.zeros(3, dtype=np.float32))
    return Judged(scorer, Calibration(np.zeros(3, np.float32), np.ones(3, np.float32)))


@pytest.fixture
def held() -> Held:
    return Held(SCORES_HK, csr_array(LABELS_HK), np.array([0, 1, 1]))


def test_chunks_by_hand(judged, held):
    found = ranked.by_chunk(judged, held, draws=50, seed=0)
    # First chunk: concepts 0 and 2 stand first and third. Second: concept 2 stands second.
    expected = {
        "mean_average_precision": ((1 + 2 / 3) / 2 + 1 / 2) / 2,
        "precision_at_1": 1 / 2, "recall_at_5": 1.0, "recall_at_16": 1.0,
    }  # fmt: skip
    assert {name: one.value for name, one in found.items()} == pytest.approx(expected)
    assert {one.n for one in found.values()} == {2}, "the chunk without a label counts nowhere"


def test_recall_at_5_counts_the_first_five():
    scorer = Linear(np.eye(7, dtype=np.float32), np.zeros(7, np.float32))
    judged = Judged(scorer, Calibration(np.zeros(7, np.float32), np.ones(7, np.float32)))
    scores_HK = np.arange(7, 0, -1, dtype=np.float32)[None] / 10
    held = Held(scores_HK, csr_array(np.array([[1, 0, 0, 0, 1, 1, 0]])), np.array([0]))
    found = ranked.by_chunk(judged, held, draws=10, seed=0)
    assert found["recall_at_5"].value == pytest.approx(2 / 3)


def test_concepts_by_hand(judged, held):
    found = ranked.by_concept(judged, held, draws=50, seed=0)
    assert found.concept_L.tolist() == [0, 2], "a concept that no chunk carries has no figures"
    assert [one.value for one in found.auc_L] == [1.0, 1.0]
    assert found.macro["macro_auc"].n == 2
    lowered = Held(
        SCORES_HK, csr_array(np.array([[0, 0, 1], [0, 1, 0], [1, 0, 1.0]])), held.document_H
    )
    again = ranked.by_concept(judged, lowered, draws=50, seed=0)
    # Scores of concept 2 are 0.7 (carried), 0.5, 0.4 (carried).
    assert [one.value for one in again.auc_L] == [0.5, 0.5, 0.5]
    assert [one.value for one in again.average_precision_L] == pytest.approx(
        [1 / 2, 1 / 2, (1 + 2 / 3) / 2]
    )


def test_pairs_by_hand(judged, held):
    found = ranked.of_pairs(judged, held, draws=50, seed=0)
    # Carried: 0.9, 0.7, 0.5. Not: 0.8, 0.1, 0.6, 0.3, 0.2, 0.4. 15 of 18 pairs are in order.
    assert found["micro_auc"].value == pytest.approx(15 / 18)
    assert found["micro_auc"].n == 9


def test_pairs_that_cannot_be_told_apart_count_half(judged, held):
    level = Held(np.zeros_like(SCORES_HK), held.labels_HK, held.document_H)
    found = ranked.of_pairs(judged, level, draws=10, seed=0)
    assert found["micro_auc"].value == pytest.approx(0.5)


def test_probabilities_that_are_right_have_no_calibration_error():
    """Two kinds of pairs: at log-odds of 1/4 and of 3/4, which so many carry."""
    distance_HK = np.repeat([[-1.0], [1.0]], 4, axis=0).astype(np.float32)
    labels_HK = np.array([[1], [0], [0], [0], [1], [1], [1], [0]], dtype=np.float32)
    scorer = Linear(np.eye(1, dtype=np.float32), np.zeros(1, np.float32))
    calibration = Calibration(np.zeros(1, np.float32), np.ones(1, np.float32))
    held = Held(distance_HK, csr_array(labels_HK), np.arange(8))
    right = Judged(scorer, calibration, slope=float(np.log(3)), shift=0.0)
    error = ranked.of_pairs(right, held, draws=20, seed=0)["calibration_error"].value
    assert error == pytest.approx(0.0, abs=1e-6)
    sure = Judged(scorer, calibration, slope=30.0, shift=0.0)
    error = ranked.of_pairs(sure, held, draws=20, seed=0)["calibration_error"].value
    assert error == pytest.approx(0.25, abs=1e-6)


def test_tiles_change_no_figure(judged, held, monkeypatch):
    whole = ranked.by_concept(judged, held, draws=20, seed=0)
    monkeypatch.setattr(annotators, "CELLS", 3)
    tiled = ranked.by_concept(judged, held, draws=20, seed=0)
    assert (tiled.auc_L, tiled.macro) == (whole.auc_L, whole.macro)
    assert ranked.of_pairs(judged, held, draws=20, seed=0)["micro_auc"].value == pytest.approx(
        15 / 18
    )
