"""Learning an annotator: three are compared on equal chunks, and the best labels them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from components import annotators, contracts, embedding
from components.annotators import Calibration
from components.atlas import learning, ranked
from components.atlas.learning import learn
from components.atlas.learning_config import FineTuneConfig, LearnConfig
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
    for name in ("documents", "chunks", "vectors", "tags", "concepts", "annotator"):
        folders[name] = tmp_path / name
        folders[name].mkdir()
    texts = [f"{words} {row}" for row in range(10) for words in TOPICS.values()]
    encoder = HashingEmbedder()
    np.save(folders["vectors"] / "vectors.npy", encoder.embed(texts).astype(np.float16))
    facts = {"name": encoder.name, "digest": encoder.digest, "dim": encoder.width}
    (folders["vectors"] / "encoder.json").write_text(json.dumps(facts))
    contracts.seal(folders["vectors"], contracts.VECTORS, rows=len(texts))
    origin = dict.fromkeys(
        ("source", "source_version", "locator", "domain", "licence", "title", "split"), "made-up"
    )
    documents = [{"doc_id": f"d{row}", **origin, "text": text} for row, text in enumerate(texts)]
    contracts.write(documents, folders["documents"], contracts.DOCUMENTS)
    pieces = [
        {"chunk_id": row, "doc_id": f"d{row}", "start": 0, "end": len(text), "n_wordpieces": 4}
        for row, text in enumerate(texts)
    ]
    whole = ({**piece, "status": "ok"} for piece in pieces)
    contracts.write(whole, folders["chunks"], contracts.CHUNKS)
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


def learned(atlas: dict[str, Path], **told: object) -> dict[str, Path]:
    config = LearnConfig(n_steps=20, n_unlabelled=16, max_prevalence=0.5, bootstrap_draws=20)
    inputs = [atlas[name] for name in ("documents", "chunks", "vectors", "tags", "concepts")]
    learn(*inputs, atlas["annotator"], config.model_copy(update=told))
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
    figures = {
        kind: found["mean_average_precision"] for kind, found in evaluation["annotators"].items()
    }
    assert {figure["n"] for figure in figures.values()} == {4}
    assert all(one["low"] <= one["value"] <= one["high"] for one in figures.values())
    assert facts["kind"] == max(figures, key=lambda kind: figures[kind]["value"])


def test_neither_thresholds_nor_labels_depend_on_the_order_of_the_chunks(atlas, tmp_path):
    one = annotators.load(learned(atlas)["annotator"])
    places = np.random.default_rng(0).permutation(30)
    where = np.argsort(places)
    vectors_ND = np.load(atlas["vectors"] / "vectors.npy")
    np.save(atlas["vectors"] / "vectors.npy", vectors_ND[places])
    contracts.seal(atlas["vectors"], contracts.VECTORS, rows=30)
    held_out = [int(where[row]) for row in (14, 15, 16, 17)]
    (atlas["tags"] / "sample.json").write_text(json.dumps({"held_out": held_out}))
    names = list(TOPICS)
    tags = [{"chunk_id": int(where[row]), "tag": names[row % 3], "kind": "c"} for row in range(18)]
    contracts.write(tags, atlas["tags"], contracts.TAGS)
    atlas["annotator"] = tmp_path / "again"
    atlas["annotator"].mkdir()
    other = annotators.load(learned(atlas)["annotator"])
    assert one.calibration.threshold_K.tobytes() == other.calibration.threshold_K.tobytes()
    assert one.label(vectors_ND.astype("f4")) == other.label(vectors_ND.astype("f4"))


def test_thresholds_are_set_on_chunks_that_nothing_was_fitted_to(atlas, monkeypatch):
    seen = []
    calibrated = Calibration.of

    def noting(scorer, vectors_ND, prevalence_K):
        seen.append(vectors_ND)
        return calibrated(scorer, vectors_ND, prevalence_K)

    monkeypatch.setattr(Calibration, "of", noting)
    learned(atlas)
    stored_ND = np.load(atlas["vectors"] / "vectors.npy").astype(np.float32)
    expected = {vector.tobytes() for vector in stored_ND[14:]}
    assert [{vector.tobytes() for vector in vectors_ND} for vectors_ND in seen] == [expected] * 3


def test_tags_of_another_library_are_refused(atlas):
    tags = [{"chunk_id": 0, "tag": "fishing", "kind": "content"}]
    contracts.write(tags, atlas["tags"], contracts.TAGS)
    with pytest.raises(ValueError, match=r"none of the 1 tags .* rerun --from canonicalise"):
        learned(atlas)


def test_priors_are_what_was_observed_times_what_taggers_miss_within_bounds():
    labels_PK = csr_array(np.array([[1, 1, 0], [1, 0, 0], [1, 0, 0], [1, 0, 0]]))
    config = LearnConfig(under_reported=1.5, min_prevalence=0.01, max_prevalence=0.5)
    np.testing.assert_allclose(learning.prevalence(labels_PK, config), [0.5, 0.375, 0.01])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_fine_tuned_encoder_that_is_best_is_kept_in_the_annotator(atlas, tmp_path, monkeypatch):
    base = small_encoder(tmp_path)
    scored = ranked.by_chunk

    def favouring(judged, held, draws, seed):
        """The encoder that hashes is perfect here: let it be the worse one."""
        found = scored(judged, held, draws, seed)["mean_average_precision"]
        is_tuned = held.vectors_HD.shape[1] == 12
        return {"mean_average_precision": replace(found, value=found.value + is_tuned)}

    monkeypatch.setattr(ranked, "by_chunk", favouring)
    tuning = FineTuneConfig(base=base, n_steps=60, batch_chunks=8, lr=5e-3, head_lr=0.05)
    kept = annotators.load(learned(atlas, encoder="fine_tuned", fine_tuning=tuning)["annotator"])
    assert kept.encoder == atlas["annotator"] / "encoder"
    encoder = embedding.load(str(kept.encoder))
    facts = contracts.json_file(atlas["annotator"], "annotator.json")
    assert facts["encoder_digest"] == encoder.digest != embedding.load(base).digest
    labels = kept.label(encoder.embed(["sea ship sailor", "law court judge", "sum number proof"]))
    assert [found[0][0] for found in labels] == [0, 1, 2]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_fine_tuned_encoder_that_is_not_best_is_not_kept(atlas, tmp_path):
    tuning = FineTuneConfig(base=small_encoder(tmp_path), n_steps=1, batch_chunks=2)
    learned(atlas, encoder="fine_tuned", fine_tuning=tuning)
    assert annotators.load(atlas["annotator"]).encoder == "hashing"
    assert not (atlas["annotator"] / "encoder").exists()


def small_encoder(folder: Path) -> str:
    """A sentence encoder of one layer and random weights."""
    from sentence_transformers import SentenceTransformer, models
    from transformers import BertConfig, BertModel, BertTokenizerFast

    words = sorted({word for line in TOPICS.values() for word in line.split()})
    signs = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (folder / "vocab.txt").write_text("\n".join(signs))
    torch.manual_seed(0)
    shape = BertConfig(
        vocab_size=len(signs), hidden_size=12, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=32,
    )  # fmt: skip
    BertModel(shape).save_pretrained(folder / "bert")
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder / "bert")
    pieces = models.Transformer(str(folder / "bert"), max_seq_length=16)
    made = SentenceTransformer(modules=[pieces, models.Pooling(12)], device="cpu")
    made.save(str(folder / "base"))
    return str(folder / "base")
