"""The static encoder: sums by hand, what it learns is what was planted, and files are guarded."""

import json

import numpy as np
import pytest
from scipy import sparse

from components import embedding, static_encoder
from components.static_encoder import EncoderError, Table
from tests.components.written_encoder import sentences, tokenizer, write_encoder


def test_a_vector_by_hand():
    table = Table(np.array([1.0, 2.0], np.float32), np.array([[1, 0], [0, 1]], np.float16))
    counts_NV = sparse.csr_array(np.array([[4.0, 1.0], [0.0, 0.0]], np.float32))
    # Square roots of the counts times the weights, 2 · 1 and 1 · 2, at length one.
    np.testing.assert_allclose(table.vectors(counts_NV), [[0.5**0.5, 0.5**0.5], [0, 0]], atol=1e-6)


def test_texts_are_cut_where_the_encoder_says():
    counts_NV = static_encoder.counts(["sea law sea", ""], tokenizer(), max_wordpieces=2)
    assert counts_NV.toarray()[:, :4].tolist() == [[0, 1, 0, 1], [0, 0, 0, 0]]


def test_a_planted_table_is_found_again(tmp_path):
    planted = write_encoder(tmp_path)
    taken = sentences(300)
    counts_NV = static_encoder.counts(taken, tokenizer(), 6)
    table = static_encoder.learn(counts_NV, planted.embed(taken), ridge=1e-3, n_iterations=30)
    fresh = sentences(320)[300:]
    found = table.vectors(static_encoder.counts(fresh, tokenizer(), 6))
    assert (found * planted.embed(fresh)).sum(axis=1).min() > 0.97


def test_conjugate_gradients_solve_the_normal_equations():
    draw = np.random.default_rng(2)
    x_NV, target_ND = draw.normal(size=(20, 6)), draw.normal(size=(20, 3))
    found = static_encoder._ridge_regression(sparse.csr_array(x_NV), target_ND, 0.5, 6)
    expected = np.linalg.solve(x_NV.T @ x_NV + 0.5 * np.eye(6), x_NV.T @ target_ND)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_no_other_text_changes_a_vector(tmp_path):
    encoder, texts = write_encoder(tmp_path), sentences(9)
    alone = np.concatenate([encoder.embed([text]) for text in texts])
    assert np.array_equal(encoder.embed(texts), alone)


def test_it_is_found_by_its_name_with_its_word_pieces(tmp_path):
    made = write_encoder(tmp_path)
    loaded = embedding.load(f"static:{tmp_path}")
    assert (loaded.digest, loaded.width, loaded.max_wordpieces) == (made.digest, 5, 6)
    assert embedding.word_pieces(loaded.name)("sea  law").tolist() == [0, 5]


def test_a_changed_encoder_and_a_folder_without_one_are_refused(tmp_path):
    with pytest.raises(EncoderError, match=r"lacks .*encoder.json.*clearstory distil --out"):
        embedding.load(f"static:{tmp_path}")
    write_encoder(tmp_path)
    facts = json.loads((tmp_path / "encoder.json").read_text())
    (tmp_path / "encoder.json").write_text(json.dumps({**facts, "digest": "other"}))
    with pytest.raises(EncoderError, match=r"changed after it was written.*says other"):
        embedding.load(f"static:{tmp_path}")
