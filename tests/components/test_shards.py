"""Streams in shards: the cut changes nothing, and nothing is read or trusted before its time."""

import numpy as np
import pytest
import torch

from components import contracts, loader
from components.contracts import ContractError
from components.gates.suites.tokens import stream_of
from components.packing.shards import cuts
from components.retries import StorageError
from components.tokens import TokenStream
from tests.components.packed import packed
from tests.components.simulated import SPAN_TOKENS, SimulatedPlace
from tests.components.written_corpus import Text

TEXTS = [
    Text("a", "train", "prose", [("abcd", {0: 1.0}), ("efg", {2: 0.4, 1: 0.8}), ("hij", {})]),
    *(Text(f"b{i}", "train", "code", [(f"{i}" * (5 + i), {i % 3: 1.0})]) for i in range(7)),
    Text("v", "valid", "prose", [("qrs", {1: 1.0}), ("tuvwxy", {0: 1.0})]),
    Text("t", "test", "prose", [("z", {0: 1.0})]),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return TokenStream(packed(tmp_path_factory.mktemp("whole"), TEXTS))


@pytest.fixture(scope="module")
def sharded(tmp_path_factory):
    return packed(tmp_path_factory.mktemp("sharded"), TEXTS, shard_tokens=20)


def same(found, expected):
    names = ("ids_BT", "chunk_BT", "concepts_CM", "labelled_C", "sample_ids_B")
    return all(torch.equal(getattr(found, name), getattr(expected, name)) for name in names)


@pytest.mark.parametrize("length", [3, 8, 50])
@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_the_cut_into_shards_changes_no_batch(whole, sharded, split, length):
    parts = TokenStream(sharded)
    assert len(parts.shards) > 4
    windows = np.random.default_rng(0).permutation(whole.n_windows(split, length))
    found, expected = (s.batch(split, length, windows) for s in (parts, whole))
    assert same(found, expected)
    origins = [stream.origins(split, length, windows) for stream in (parts, whole)]
    assert origins[0].span_BT.tolist() == origins[1].span_BT.tolist()
    assert origins[0].span_C.tolist() == origins[1].span_C.tolist()


def test_a_batch_from_shards_leaves_the_span_table_unread(sharded):
    (sharded / contracts.ROWS_FILE).rename(sharded / "elsewhere")
    try:
        assert len(TokenStream(sharded, eager_bytes=0).batch("train", 8, np.arange(5))) == 5
    finally:
        (sharded / "elsewhere").rename(sharded / contracts.ROWS_FILE)


def test_the_length_of_an_average_chunk_needs_no_table_either(whole, sharded):
    assert TokenStream(sharded).chunk_tokens("train") == whole.chunk_tokens("train")


def test_shards_are_whole_spans_by_hand():
    assert cuts(np.array([3, 3, 3]), 100) == [(0, 3)]
    assert cuts(np.array([3, 3, 3, 1]), 6) == [(0, 2), (2, 4)]
    assert cuts(np.array([2, 9, 1, 1]), 4) == [(0, 1), (1, 2), (2, 4)]


def test_the_gate_compares_records_with_the_table(sharded, tmp_path):
    said = stream_of(sharded)
    assert said.n_tokens == sum(shard.n_tokens for shard in TokenStream(sharded).shards)
    assert said.unlike_records == 0
    other = packed(tmp_path, TEXTS, shard_tokens=20)
    record_N = np.load(other / "shards/00001/spans.npy")
    record_N["concept_ids"][0, 0] += 1
    np.save(other / "shards/00001/spans.npy", record_N)
    assert stream_of(other).unlike_records == 1


def flipped(folder, name):
    content = bytearray((folder / name).read_bytes())
    content[-1] ^= 1
    (folder / name).write_bytes(content)


def test_a_small_artifact_with_a_changed_shard_is_refused_when_it_is_opened(tmp_path):
    folder = packed(tmp_path, TEXTS, shard_tokens=20)
    flipped(folder, "shards/00002/stream.npy")
    with pytest.raises(
        ContractError, match=r"shards/00002/stream.npy was changed.*rerun --from pa"
    ):
        TokenStream(folder)


@pytest.mark.parametrize("file", ["stream.npy", "spans.npy", "blocks.npy"])
def test_a_changed_shard_of_a_huge_artifact_is_refused_at_first_touch(tmp_path, file):
    folder = packed(tmp_path, TEXTS, shard_tokens=20)
    promised = contracts.manifest_of(folder).files[f"shards/00002/{file}"].sha256[:12]
    flipped(folder, f"shards/00002/{file}")
    stream = TokenStream(folder, eager_bytes=0)
    first = stream.batch("train", 8, np.array([0]))
    assert len(first) == 1
    with pytest.raises(ContractError, match=rf"shards/00002/{file} .*SHA-256 \w+…, .*{promised}"):
        stream.batch("train", 8, np.arange(stream.n_windows("train", 8)))


def test_a_shard_that_was_cut_short_or_lost_is_refused(tmp_path):
    folder = packed(tmp_path, TEXTS, shard_tokens=20)
    path = folder / "shards/00002/stream.npy"
    path.write_bytes(path.read_bytes()[:-2])
    windows = np.arange(5)
    with pytest.raises(ContractError, match=r"00002/stream.npy has \d+ bytes, the manifest says"):
        TokenStream(folder, eager_bytes=0).batch("train", 8, windows)
    path.unlink()
    with pytest.raises(StorageError, match=r"00002/stream.npy is gone"):
        TokenStream(folder, eager_bytes=0).batch("train", 8, windows)


def test_an_edited_manifest_of_a_huge_artifact_is_refused(tmp_path):
    folder = packed(tmp_path, TEXTS, shard_tokens=20)
    path = folder / "manifest.json"
    promised = contracts.manifest_of(folder).files["shards/00002/stream.npy"].sha256
    path.write_text(path.read_text().replace(promised, "0" * 64))
    with pytest.raises(ContractError, match="was edited"):
        TokenStream(folder, eager_bytes=0)


def test_a_trillion_tokens_are_opened_without_touching_a_shard(tmp_path):
    place = SimulatedPlace(tmp_path / "tokens", n_shards=1_000, shard_tokens=10**9)
    batches = loader.of_stream(
        TokenStream(place), {}, length=4096, batch_sequences=3, seed=1, rank=1, world=3
    )
    step = 80_000_000  # in the last of the stream's 244 M windows
    batches.restore(batches.state(step))
    assert place.touched <= {"tokens.json", "tokenizer.json"}
    batch = batches.batch(step)
    n_shards = len(
        {name.removesuffix(name.split("/")[-1]) for name in place.touched if "/" in name}
    )
    assert n_shards == 1
    assert place.n_bytes_read < 40_000  # headers, 4,096 tokens of two bytes, 43 records of 88
    drawn = batches.order.at(batch.sample_ids_B.numpy(), seed=1).element_N
    first = int(drawn[0]) * 4096 % 10**9
    assert batch.ids_BT[0, :5].tolist() == [(first + i) % 256 for i in range(5)]
    chunk_of_T = batch.chunk_BT[0].numpy()
    assert chunk_of_T.max() + 1 == (first + 4095) // SPAN_TOKENS - first // SPAN_TOKENS + 1
    assert batch.concepts_CM[0, 0] == first // SPAN_TOKENS % 7
