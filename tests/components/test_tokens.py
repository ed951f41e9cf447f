"""Batches of the token stream: by hand, and the same whatever the number of ranks."""

import numpy as np
import pytest
import torch

from components.packing.config import PackConfig
from components.packing.stage import pack
from components.tokens import TokenStream
from tests.components.written_corpus import Text, write_corpus

LENGTH = 8
TEXTS = [
    Text("a", "train", "prose", [("abcd", {0: 1.0}), ("efg", {2: 0.4, 1: 0.8}), ("hij", {})]),
    Text("v", "valid", "prose", [("qrs", {1: 1.0}), ("tuvwxy", {0: 1.0})]),
    Text("t", "test", "prose", [("z", {0: 1.0})]),
    *(Text(f"b{i}", "train", "code", [(f"{i}" * 17, {0: 1.0})]) for i in range(7)),
]


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stream")
    corpus = write_corpus(folder / "corpus", TEXTS, n_concepts=3)
    (folder / "tokens").mkdir()
    pack(
        corpus.documents, corpus.chunks, corpus.concepts, corpus.labels, folder / "tokens",
        PackConfig(vocab_size=264, block=4),
    )  # fmt: skip
    return TokenStream(folder / "tokens")


def text_of(stream, batch):
    return ["".join(stream.tokenizer.pieces(row.tolist())) for row in batch.ids_BT]


def test_a_batch_by_hand(stream):
    batch = stream.batch("train", LENGTH, np.array([1, 0]))

    assert text_of(stream, batch) == [
        "g<|endofchunk|>hij<|endofchunk|><|endoftext|><|bos|>",
        "<|bos|>abcd<|endofchunk|>ef",
    ]
    assert batch.chunk_BT.tolist() == [
        [0, -1, 1, 1, 1, -1, -1, -1],
        [-1, 2, 2, 2, 2, -1, 3, 3],
    ]
    assert batch.concepts_CM[:, :3].tolist() == [[1, 2, -1], [-1, -1, -1], [0, -1, -1], [1, 2, -1]]
    assert batch.labelled_C.tolist() == [True, False, True, True]
    assert batch.sample_ids_B.tolist() == [1, 0]
    assert batch.ids_BT.dtype == batch.chunk_BT.dtype == batch.concepts_CM.dtype == torch.int64


def test_a_chunk_seen_by_its_special_tokens_alone_is_no_chunk(stream):
    windows = np.array([1])  # its last token is the first of document b0
    origins = stream.origins("train", LENGTH, windows)
    assert stream.spans.doc_id[origins.span_BT[0, -1]] == "b0"
    assert [stream.spans.doc_id[row] for row in origins.span_C] == ["a", "a"]
    assert stream.batch("train", LENGTH, windows).labelled_C.tolist() == [True, False]


def test_the_last_window_is_filled_with_padding(stream):
    assert stream.n_windows("valid", 10) == 2
    batch = stream.batch("valid", 10, np.array([1]))
    assert text_of(stream, batch) == ["y<|endofchunk|><|endoftext|>" + "<|pad|>" * 7]
    assert batch.chunk_BT.tolist() == [[0] + [-1] * 9]


def test_a_window_beyond_the_split_is_refused(stream):
    with pytest.raises(ValueError, match="valid has 2"):
        stream.batch("valid", 10, np.array([2]))


def test_windows_in_order_hold_a_split_exactly(stream):
    seen = torch.cat([batch.ids_BT.flatten() for batch in stream.batches("valid", 4, 3)])
    rows = range(len(stream.spans))
    inside = [row for row in rows if stream.spans.split[row] == "valid"]
    assert seen.tolist() == np.concatenate([stream.span_tokens(row) for row in inside]).tolist()


def test_origins_name_the_span_of_every_token_and_chunk(stream):
    windows = np.array([1, 0])
    batch = stream.batch("train", LENGTH, windows)
    origins = stream.origins("train", LENGTH, windows)
    assert stream.spans.chunk_id[origins.span_C].tolist() == [1, 2, 0, 1]
    pooled = batch.chunk_BT.numpy() >= 0
    local = batch.chunk_BT.numpy()[pooled]
    assert origins.span_BT[pooled].tolist() == origins.span_C[local].tolist()
    assert (stream.origins("valid", 10, np.array([1])).span_BT[0, 6:] == -1).all()


def test_a_window_belongs_to_the_domain_of_most_of_its_tokens(stream):
    domains = stream.windows_by_domain(LENGTH)
    assert domains["prose"].tolist() == [0, 1]
    assert sorted(np.concatenate(list(domains.values())).tolist()) == list(
        range(stream.n_windows("train", LENGTH))
    )
