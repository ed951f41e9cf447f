"""Encoders by name."""

from pathlib import Path

import numpy as np
import pytest

from components import embedding, fetch


def needs_minilm() -> None:
    try:
        fetch.need(embedding.PACKAGES[embedding.MINILM])
    except fetch.NotFetchedError as error:
        pytest.skip(str(error).splitlines()[0])


def test_batches_hold_texts_of_like_length_within_the_bound_and_each_row_once() -> None:
    lengths = [200, 3, 256, 7, 190, 256, 12, 1] * 9
    batches = embedding._batches_by_length(lengths)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    for batch in batches:
        assert max(lengths[row] for row in batch) * len(batch) <= 768
    longest = [lengths[batch[0]] for batch in batches]
    assert longest == sorted(longest, reverse=True)


def test_a_text_longer_than_a_batch_has_a_batch_of_its_own() -> None:
    assert embedding._batches_by_length([5000, 4000, 2]) == [[0], [1], [2]]


def test_minilm_vectors_depend_on_the_text_not_on_its_neighbours() -> None:
    needs_minilm()
    texts = ["The liver filters blood.", "x", "a tragedy in five acts " * 40, "def f(): pass"]
    encoder = embedding.load(embedding.MINILM, n_workers=2)
    together_ND = encoder.embed(texts)
    alone_ND = np.concatenate([encoder.embed([text]) for text in texts])
    np.testing.assert_allclose(together_ND, alone_ND, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(together_ND, axis=1), 1, rtol=1e-5)


def test_minilm_knows_what_means_the_same() -> None:
    needs_minilm()
    doctor, physician, sonnet = embedding.load(embedding.MINILM).embed(
        ["a doctor", "a physician", "a sonnet"]
    )
    assert doctor @ physician > 0.7 > 0.4 > doctor @ sonnet


def test_minilm_word_pieces_start_where_their_characters_are() -> None:
    needs_minilm()
    assert embedding.word_pieces(embedding.MINILM)("Kékséa  anatomical!").tolist()[-2:] == [8, 18]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_any_sentence_transformers_model_loads_by_path(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer, models
    from transformers import BertConfig, BertModel, BertTokenizerFast

    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nliver\nblood\n##s\n")
    small = BertConfig(vocab_size=8, hidden_size=12, num_hidden_layers=1, num_attention_heads=2,
                       intermediate_size=16, max_position_embeddings=32)  # fmt: skip
    BertModel(small).save_pretrained(tmp_path / "bert")
    BertTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path / "bert")
    words = models.Transformer(str(tmp_path / "bert"), max_seq_length=16)
    folder = tmp_path / "encoder"
    SentenceTransformer(modules=[words, models.Pooling(12)], device="cpu").save(str(folder))
    encoder = embedding.load(str(folder))
    vectors_ND = encoder.embed(["liver", "blood livers", ""])
    assert vectors_ND.shape == (3, encoder.width) == (3, 12)
    np.testing.assert_allclose(np.linalg.norm(vectors_ND, axis=1), 1, rtol=1e-5)
    assert embedding.load(str(folder)).digest == encoder.digest
    assert embedding.word_pieces(str(folder))("livers blood").tolist() == [0, 5, 7]
