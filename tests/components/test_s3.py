"""The token stream from a real S3 server."""

from pathlib import Path

import numpy as np
import pytest

from components import contracts, loader, store
from components.contracts import ContractError
from components.retries import StorageError
from components.storage import StorageConfig
from components.tokens import TokenStream
from tests.components.packed import packed
from tests.components.seaweed import KEY, SECRET, server
from tests.components.test_shards import TEXTS, same

BUCKET = "corpus"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with server(tmp_path_factory.mktemp("seaweed"), BUCKET) as address:
        yield address


@pytest.fixture
def storage(address, monkeypatch):
    monkeypatch.setenv("TEST_ACCESS_KEY", KEY)
    monkeypatch.setenv("TEST_SECRET_KEY", SECRET)
    return StorageConfig(
        endpoint_url=address, access_key_variable="TEST_ACCESS_KEY",
        secret_key_variable="TEST_SECRET_KEY", parallel_reads=3, attempts=2,
    )  # fmt: skip


def sent(folder: Path, storage, prefix):
    location = f"s3://{BUCKET}/{prefix}"
    store.send(folder, contracts.TOKENS, location, storage)
    return location


@pytest.mark.parametrize("shard_tokens", [20, 1000])
def test_batches_from_s3_are_those_from_the_folder(storage, tmp_path, shard_tokens):
    folder = packed(tmp_path, TEXTS, shard_tokens=shard_tokens)
    place = store.place(sent(folder, storage, f"run/{shard_tokens}"), storage, tmp_path / "cache")
    here, there = (
        loader.of_stream(TokenStream(where), {}, length=8, batch_sequences=6, seed=3)
        for where in (folder, place)
    )
    there.restore(here.state(5))
    for step in (5, 6):
        assert same(there.batch(step), here.batch(step))
    place.close()


def test_a_shard_replaced_in_s3_is_refused_with_both_digests(storage, tmp_path):
    folder = packed(tmp_path, TEXTS, shard_tokens=20)
    location = sent(folder, storage, "replaced")
    changed = bytearray((folder / "shards/00001/stream.npy").read_bytes())
    changed[-1] ^= 1
    (folder / "shards/00001/stream.npy").write_bytes(changed)
    bucket = store.S3Bucket(BUCKET, storage)
    place = store.place(location, storage, tmp_path / "cache")
    stream = TokenStream(place)
    windows = np.arange(stream.n_windows("train", 8))
    bucket.put("replaced/shards/00001/stream.npy", folder / "shards/00001/stream.npy")
    with pytest.raises(ContractError, match=r"shards/00001/stream.npy was changed.*SHA-256 \w+…, "):
        stream.batch("train", 8, windows)
    place.close()
    bucket.close()


def test_an_object_replaced_under_an_open_stream_is_refused(storage, tmp_path):
    folder = packed(tmp_path, TEXTS, shard_tokens=20)
    place = store.place(sent(folder, storage, "under"), storage, tmp_path / "cache")
    stream = TokenStream(place)
    stream.batch("train", 8, np.array([0]))
    bucket = store.S3Bucket(BUCKET, storage)
    bucket.put("under/stream.npy", folder / "tokenizer.json")
    with pytest.raises(StorageError, match="replaced since it was opened"):
        stream.batch("train", 8, np.array([0]))
    place.close()
    bucket.close()


def test_wrong_keys_fail_at_once(storage, tmp_path, monkeypatch):
    monkeypatch.setenv("TEST_SECRET_KEY", "another")
    waits = []
    bucket = store.S3Bucket(BUCKET, storage)
    place = store.S3Place(bucket, "run", tmp_path / "cache", storage, sleep=waits.append)
    with pytest.raises(StorageError, match=r"s3://corpus/run/manifest.json.*keys are wrong"):
        TokenStream(place)
    assert waits == []
    place.close()


def test_an_artifact_that_is_not_there_is_named(storage, tmp_path):
    place = store.place(f"s3://{BUCKET}/nowhere", storage, tmp_path / "cache")
    with pytest.raises(StorageError, match=r"s3://corpus/nowhere/manifest.json.*no such object"):
        TokenStream(place)
    place.close()


def test_a_missing_key_is_named_by_its_variable(storage, monkeypatch, tmp_path):
    monkeypatch.delenv("TEST_SECRET_KEY")
    with pytest.raises(StorageError, match="TEST_SECRET_KEY holds no key"):
        store.place(f"s3://{BUCKET}/run", storage, tmp_path)
