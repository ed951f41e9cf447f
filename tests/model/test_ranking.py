"""AUROC and average precision, with ties and weights."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from model.ranking import rank

SCORE_N = np.array([0.9, 0.8, 0.8, 0.3, 0.1], dtype=np.float32)
POSITIVE_N = np.array([True, False, True, False, False])


def ones(n: int) -> np.ndarray:
    return np.ones((n, 1), dtype=np.float32)


def test_by_hand_with_a_tie():
    found = rank(SCORE_N, POSITIVE_N, ones(5))
    # The first positive beats three negatives; the second beats two and ties with one.
    assert found.auroc_W.tolist() == pytest.approx([(3 + 2.5) / 6])
    assert found.average_precision_W.tolist() == pytest.approx([(1 + 2 / 3) / 2])


def test_one_kind_alone_has_no_auroc():
    assert np.isnan(rank(SCORE_N, np.ones(5, dtype=bool), ones(5)).auroc_W[0])


@pytest.mark.parametrize("decimals", [1, 6])
def test_weightings_agree_with_a_well_known_implementation(decimals: int):
    random = np.random.default_rng(0)
    score_N = np.round(random.normal(size=200), decimals).astype(np.float32)
    positive_N = random.random(200) < 0.2
    weight_NW = random.integers(0, 4, (200, 3)).astype(np.float32)
    found = rank(score_N, positive_N, weight_NW)
    for column in range(3):
        weights = {"sample_weight": weight_NW[:, column]}
        assert found.auroc_W[column] == pytest.approx(
            roc_auc_score(positive_N, score_N, **weights), abs=1e-6
        )
        assert found.average_precision_W[column] == pytest.approx(
            average_precision_score(positive_N, score_N, **weights), abs=1e-6
        )
