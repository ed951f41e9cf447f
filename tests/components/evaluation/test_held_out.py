"""Held-out text: nothing of the training split, every token once, every byte once."""

import itertools

import numpy as np
import pytest

from components.evaluation.held_out import HeldOut
from components.tokens import TokenStream
from tests.components.written_tokens import BLOCK, CONCEPTS, write_tokens


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> TokenStream:
    return TokenStream(write_tokens(tmp_path_factory.mktemp("data") / "tokens"))


@pytest.fixture(scope="module")
def held_out(stream: TokenStream) -> HeldOut:
    return HeldOut(stream, ("valid", "test"), 3 * BLOCK)


def test_no_training_document_is_held_out(stream, held_out):
    training = {
        name
        for name, split in zip(stream.spans.doc_id, stream.spans.split, strict=True)
        if split == "train"
    }
    assert len(held_out.documents) == 9
    assert not training & set(held_out.documents.tolist())


def test_every_held_out_byte_is_counted_once(stream, held_out):
    counted = sum(window.bytes_BT.sum() for window in held_out.windows(4, max_tokens=10**9))
    packed = sum(sum(stream.n_bytes(split).values()) for split in ("valid", "test"))
    assert counted == pytest.approx(packed)


def test_every_document_has_its_own_tokens(stream, held_out):
    found: dict[str, list[int]] = {}
    for window in held_out.windows(4, max_tokens=10**9):
        for number, token in zip(
            window.document_BT.ravel(), window.batch.ids_BT.numpy().ravel(), strict=True
        ):
            if number >= 0:
                found.setdefault(str(held_out.documents[number]), []).append(int(token))
    rows = stream.span_rows("test")
    first = str(stream.spans.doc_id[rows[0]])
    wanted = np.concatenate(
        [stream.span_tokens(r) for r in rows if stream.spans.doc_id[r] == first]
    )
    assert found[first] == wanted.tolist()


def test_a_chunk_cut_by_a_window_stays_one_chunk(held_out):
    seen = [
        {int(row) for row in window.chunk_row_C} for window in held_out.windows(1, max_tokens=10**9)
    ]
    assert any(before & after for before, after in itertools.pairwise(seen))
    assert len(set.union(*seen)) == len(held_out.span_rows) == 36


def test_fewer_tokens_are_spread_over_both_splits(held_out):
    some = list(held_out.windows(2, max_tokens=6 * 3 * BLOCK))
    assert sum(len(window.batch) for window in some) == 6
    assert len({int(window.document_BT.max()) for window in some}) > 1


def test_no_two_windows_share_their_noise(held_out):
    names = [
        int(name) for w in held_out.windows(4, max_tokens=10**9) for name in w.batch.sample_ids_B
    ]
    assert len(names) == len(set(names))


def test_labels_are_those_of_the_chunks(stream, held_out):
    label_NK = held_out.labels(len(CONCEPTS))
    assert label_NK.sum(dim=1).tolist() == [2] * 36
    present = stream.spans.concepts_NM[held_out.span_rows[5]][:2]
    assert label_NK[5].nonzero()[:, 0].tolist() == present.tolist()
    assert held_out.supervised().all()
