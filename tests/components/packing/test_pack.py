"""Packing: where every token of the stream comes from, and which labels reach it."""

import json

import numpy as np
import pytest

from components import contracts
from components.packing.config import PackConfig
from components.packing.stage import pack
from components.tokens import TokenStream
from model.tokenizer import train
from tests.components.written_corpus import Corpus, Text, write_corpus
from tests.components.written_labels import write_labels

CONFIG = PackConfig(vocab_size=264, block=4)
TEXTS = [
    Text("one", "train", "prose", [("ab", {2: 0.5, 0: 0.9}), ("c", {})]),
    Text("two", "test", "code", [("é", {1: 1.0})]),
    Text("three", "train", "code", [("<|mask|>", {1: 0.2})]),
    Text("four", "valid", "prose", [("xyz", {0: 1.0})]),
]


def packed(corpus: Corpus, folder, config=CONFIG):
    folder.mkdir()
    pack(corpus.documents, corpus.chunks, corpus.concepts, corpus.labels, folder, config)
    return TokenStream(folder)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus"), TEXTS, n_concepts=3)


@pytest.fixture(scope="module")
def stream(corpus, tmp_path_factory):
    return packed(corpus, tmp_path_factory.mktemp("packed") / "tokens")


def names(stream, row):
    return "".join(stream.tokenizer.pieces(stream.span_tokens(row)))


def test_a_stream_by_hand(stream):
    assert [names(stream, row) for row in range(len(stream.spans))] == [
        "<|bos|>ab<|endofchunk|>",
        "c<|endofchunk|><|endoftext|>",
        "<|bos|><|mask|><|endofchunk|><|endoftext|>",
        "<|pad|><|pad|>",
        "<|bos|>xyz<|endofchunk|><|endoftext|>",
        "<|pad|><|pad|>",
        "<|bos|>\ufffd\ufffd<|endofchunk|><|endoftext|>",
        "<|pad|><|pad|><|pad|>",
    ]


def test_splits_follow_each_other_in_whole_blocks(stream):
    assert stream.bounds == {"train": (0, 20), "valid": (20, 28), "test": (28, 36)}


def test_spans_tile_the_stream(stream):
    spans = stream.spans
    assert spans.token_start[0] == 0
    assert spans.token_end[:-1].tolist() == spans.token_start[1:].tolist()
    assert spans.token_end[-1] == stream.bounds["test"][1]


def test_a_special_string_in_a_text_stays_text(stream):
    ids = stream.span_tokens(2).tolist()
    assert stream.specials.mask_id not in ids
    assert len(ids) == len("<|mask|>") + 3


def test_labels_come_best_first_and_their_absence_is_remembered(stream):
    labelled = {
        int(chunk_id): concepts[concepts >= 0].tolist()
        for chunk_id, concepts in zip(stream.spans.chunk_id, stream.spans.concepts_NM, strict=True)
        if chunk_id >= 0
    }
    assert labelled == {0: [0, 2], 1: [], 2: [1], 3: [1], 4: [0]}
    assert stream.spans.labelled[stream.spans.chunk_id == 1].tolist() == [False]


def test_only_the_best_labels_are_kept(corpus, tmp_path):
    config = PackConfig(vocab_size=264, block=4, max_concepts=1)
    assert packed(corpus, tmp_path / "tokens", config).spans.concepts_NM[0, :2].tolist() == [0, -1]


def test_bytes_are_those_of_the_text(stream):
    assert stream.n_bytes("train") == {"prose": 3, "code": 8}
    assert stream.n_bytes("test") == {"code": 2}


def test_the_account_agrees_with_the_table(stream):
    facts = json.loads((stream.tokenizer_path.parent / "tokens.json").read_text())
    assert facts["bytes"]["train"] == stream.n_bytes("train")
    assert (facts["n_documents"], facts["n_chunks"], facts["n_labels"]) == (4, 5, 5)
    assert facts["n_unlabelled_chunks"] == 1


def test_the_same_inputs_give_the_same_bytes(corpus, stream, tmp_path):
    packed(corpus, tmp_path / "again")
    first = contracts.manifest_of(stream.tokenizer_path.parent)
    assert contracts.manifest_of(tmp_path / "again").digest == first.digest


def test_ids_take_two_bytes_while_the_vocabulary_fits(stream):
    assert np.load(stream.tokenizer_path.parent / "stream.npy").dtype == np.uint16


def test_labels_made_with_another_library_are_refused_though_their_ids_exist(tmp_path):
    other = write_corpus(tmp_path / "corpus", TEXTS, n_concepts=3)
    write_labels([], other.labels, library_digest="another")
    with pytest.raises(contracts.ContractError, match=r"library another…, but .*from learn"):
        packed(other, tmp_path / "tokens")


def test_ids_beyond_the_library_are_refused(tmp_path):
    texts = [Text("one", "train", "prose", [("ab", {3: 0.5})])]
    corpus = write_corpus(tmp_path, texts, n_concepts=3)
    with pytest.raises(contracts.ContractError, match=r"concept ids \[3\].*another library"):
        packed(corpus, tmp_path / "tokens")


def test_a_given_tokenizer_is_used_as_it_is(corpus, tmp_path):
    given = train(["abc abc abc"] * 3, 267, tmp_path / "given.json")
    config = PackConfig(vocab_size=267, block=4, given_tokenizer=str(tmp_path / "given.json"))
    stream = packed(corpus, tmp_path / "tokens", config)
    assert stream.tokenizer.encode("abc") == given.encode("abc")


def test_a_given_tokenizer_of_another_size_is_refused(corpus, tmp_path):
    train(["abc abc abc"] * 3, 267, tmp_path / "given.json")
    config = PackConfig(vocab_size=300, block=4, given_tokenizer=str(tmp_path / "given.json"))
    with pytest.raises(ValueError, match=r"vocab_size is 300, but .* 267 tokens"):
        packed(corpus, tmp_path / "tokens", config)
