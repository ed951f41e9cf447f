"""The annotator: thresholds meet prevalence, the risk is never negative, reload labels the same."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from components import annotators, contracts
from components.annotators import Annotator, Calibration, Linear, Neighbours
from components.atlas.learning import _risk, learn
from components.atlas.learning_config import LearnConfig
from components.hashing import HashingEmbedder
from components.library import freeze

TOPICS = {
    "sea": "sea ship sailor harbour",
    "law": "law court judge statute",
    "sum": "sum number proof",
}


@pytest.fixture
def atlas(tmp_path: Path) -> dict[str, Path]:
    """30 chunks on three topics, of which 18 are tagged with their topic's word."""
    folders = {}
    for name in ("chunks", "vectors", "tags", "concepts", "annotator"):
        folders[name] = tmp_path / name
        folders[name].mkdir()
    texts = [f"{words} {row}" for row in range(10) for words in TOPICS.values()]
    encoder = HashingEmbedder()
    np.save(folders["vectors"] / "vectors.npy", encoder.embed(texts).astype(np.float16))
    facts = {"name": encoder.name, "digest": encoder.digest, "dim": encoder.width}
    (folders["vectors"] / "encoder.json").write_text(json.dumps(facts))
    contracts.seal(folders["vectors"], contracts.VECTORS, rows=len(texts))
    piece = {"doc_id": "d", "start": 0, "end": 1, "n_wordpieces": 4, "status": "ok"}
    contracts.write(
        ({"chunk_id": row, **piece} for row in range(30)), folders["chunks"], contracts.CHUNKS
    )
    (folders["tags"] / "sample.json").write_text('{"held_out": [14, 15, 16, 17]}')
    names = list(TOPICS)
    tags = ({"chunk_id": row, "tag": names[row % 3], "kind": "content"} for row in range(18))
    contracts.write(tags, folders["tags"], contracts.TAGS)
    rows = [
        {
            "concept_id": row, "name": name, "description": TOPICS[name], "kind": "content",
            "parent": "t", "taxonomy": f"t / {name}", "prevalence": 0.3, "n_chunks": 6,
            "coherence": 0.9, "members": [name],
        }
        for row, name in enumerate(names)
    ]  # fmt: skip
    freeze(rows, encoder.embed(names), {}, folders["concepts"])
    return folders


def learned(atlas: dict[str, Path]) -> dict[str, Path]:
    config = LearnConfig(n_steps=20, n_unlabelled=16, max_prevalence=0.5)
    learn(
        atlas["chunks"],
        atlas["vectors"],
        atlas["tags"],
        atlas["concepts"],
        atlas["annotator"],
        config,
    )
    return atlas


def test_chunks_are_labelled_with_their_topic(atlas):
    learned(atlas)
    vectors_ND = np.load(atlas["vectors"] / "vectors.npy").astype(np.float32)
    found = annotators.load(atlas["annotator"]).label(vectors_ND)
    assert [labels[0][0] for labels in found] == [row % 3 for row in range(30)]


def test_the_three_annotators_are_compared_on_held_out_chunks(atlas):
    learned(atlas)
    facts = contracts.json_file(atlas["annotator"], "annotator.json")
    evaluation = facts["evaluation"]
    assert set(evaluation["annotators"]) == {"cards", "neighbours", "trained"}
    assert evaluation["n_held_out_chunks"] == 4
    best = max(evaluation["annotators"].items(), key=lambda item: item[1]["mean_average_precision"])
    assert facts["kind"] == best[0]


def test_thresholds_meet_the_prevalence_by_hand():
    scores_NK = np.array([[0.1, 5.0], [0.2, 4.0], [0.3, 3.0], [0.4, 2.0]], dtype=np.float32)
    calibration = Calibration.to_prevalence(scores_NK, np.array([0.25, 0.5], dtype=np.float32))
    kept_NK = calibration.probability(scores_NK) >= 0.5
    assert kept_NK.sum(axis=0).tolist() == [1, 2]


def test_a_chunk_has_at_least_one_label_and_at_most_the_cap():
    scorer = Linear(np.eye(4, dtype=np.float32), np.zeros(4, dtype=np.float32))
    calibration = Calibration(np.full(4, 0.5, np.float32), np.ones(4, np.float32))
    found = Annotator(scorer, calibration, max_labels=2).label(
        np.array([[0.1, 0.2, 0.3, 0.0], [0.9, 0.8, 0.7, 0.6]], dtype=np.float32)
    )
    assert [[concept for concept, _ in labels] for labels in found] == [[2], [0, 1]]


@pytest.mark.parametrize("kind", ["neighbours", "trained"])
def test_a_reloaded_annotator_gives_the_same_labels(kind, tmp_path):
    draw = np.random.default_rng(0)
    vectors_ND = draw.normal(size=(6, 5)).astype(np.float32)
    if kind == "trained":
        scorer = Linear(draw.normal(size=(3, 5)).astype(np.float32), np.zeros(3, np.float32))
    else:
        scorer = Neighbours(vectors_ND[:4], np.eye(4, 3, dtype=np.float32), n_neighbours=2)
    calibration = Calibration.to_prevalence(scorer.scores(vectors_ND), np.full(3, 0.3, np.float32))
    made = Annotator(scorer, calibration, max_labels=2)
    annotators.save(made, tmp_path, kind, {"n_neighbours": 2})
    assert annotators.load(tmp_path).label(vectors_ND) == made.label(vectors_ND)


def test_neighbours_vote_by_similarity_by_hand():
    tagged_PD = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], dtype=np.float32)
    labels_PK = np.array([[1, 0], [0, 1], [0, 1]], dtype=np.float32)
    found = Neighbours(tagged_PD, labels_PK, n_neighbours=2).scores(
        np.array([[1.0, 0.0]], dtype=np.float32)
    )
    np.testing.assert_allclose(found, [[1.0 / 1.6, 0.6 / 1.6]], rtol=1e-6)


def test_the_negative_part_of_the_risk_is_cut_at_zero():
    tagged_PK = torch.tensor([[4.0]])
    unlabelled_UK = torch.tensor([[-40.0]])
    risk = _risk(tagged_PK, torch.tensor([[1.0]]), unlabelled_UK, torch.tensor([0.5]))
    expected = 0.5 * torch.nn.functional.softplus(torch.tensor(-4.0))
    torch.testing.assert_close(risk, expected)


def test_average_precision_by_hand():
    scores_NK = np.array([[0.9, 0.8, 0.7]], dtype=np.float32)
    labels_NK = np.array([[1.0, 0.0, 1.0]], dtype=np.float32)
    assert annotators.average_precision(scores_NK, labels_NK) == [(1.0 + 2 / 3) / 2]
    assert annotators.recall_at(scores_NK, labels_NK, k=2) == [0.5]
