"""Distilling: from a run's chunks and vectors, evenly over the corpus, to an encoder like it."""

import json

import numpy as np
import pytest

from components import contracts, embedding
from components.atlas.distilling import DistilConfig, distil
from tests.components.written_corpus import Text, write_corpus
from tests.components.written_encoder import sentences, write_encoder


@pytest.fixture
def encoded(tmp_path):
    """Documents, chunks and vectors of 240 chunks by an encoder of a few words."""
    teacher = write_encoder(tmp_path / "teacher")
    texts = sentences(240)
    chunks = [[(text, {}) for text in texts[first : first + 8]] for first in range(0, 240, 8)]
    written = [Text(f"d{n}", "train", "prose", part) for n, part in enumerate(chunks)]
    corpus = write_corpus(tmp_path / "corpus", written, n_concepts=1)
    vectors = tmp_path / "vectors"
    vectors.mkdir()
    np.save(vectors / "vectors.npy", teacher.embed(texts).astype(np.float16))
    (vectors / "encoder.json").write_text(
        json.dumps({"name": teacher.name, "digest": teacher.digest})
    )
    contracts.seal(vectors, contracts.VECTORS, rows=240)
    return corpus.documents, corpus.chunks, vectors


def test_it_comes_near_to_chunks_it_did_not_learn_from(encoded, tmp_path):
    made = distil(*encoded, tmp_path / "out", DistilConfig(ridge=1e-3))
    facts = json.loads((tmp_path / "out" / "encoder.json").read_text())
    assert (facts["n_chunks"], facts["n_held_out"]) == (228, 12)
    assert facts["cosine_held_out"] > 0.95
    assert facts["teacher_digest"] == embedding.load(f"static:{tmp_path / 'teacher'}").digest
    again = distil(*encoded, tmp_path / "again", DistilConfig(ridge=1e-3))
    assert again.digest == made.digest


def test_a_long_corpus_is_read_evenly(encoded, tmp_path):
    distil(*encoded, tmp_path / "out", DistilConfig(max_chunks=100))
    facts = json.loads((tmp_path / "out" / "encoder.json").read_text())
    assert facts["n_chunks"] + facts["n_held_out"] == 80


def test_too_few_chunks_are_refused(encoded, tmp_path):
    with pytest.raises(ValueError, match=r"10 chunks are too few: one of 20 is held out"):
        distil(*encoded, tmp_path / "out", DistilConfig(max_chunks=10))
