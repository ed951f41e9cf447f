"""The token stream from a real S3 server."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from components import contracts, loader, store
from components.contracts import ContractError
from components.data_config import DataConfig
from components.retries import StorageError
from components.storage import StorageConfig
from components.tokens import TokenStream
from components.training.stage import train
from tests.components import fed_job
from tests.components.packed import packed
from tests.components.seaweed import KEY, SECRET, server
from tests.components.small_training import train_config
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
    return store.send(folder, contracts.TOKENS, f"s3://{BUCKET}/{prefix}", storage).location


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


@pytest.mark.parametrize("ahead", [0, 2])
def test_a_stage_that_reads_s3_writes_the_bytes_of_one_that_reads_the_folder(
    storage, tmp_path, ahead
):
    tokens = fed_job.write_tokens(tmp_path)
    location = sent(tokens, storage, f"trained/{ahead}")
    remote = DataConfig(location=location, storage=storage, ahead=ahead)
    alone = tmp_path / "manifest alone"
    alone.mkdir()
    shutil.copy(tokens / "manifest.json", alone)
    written = []
    for folder, data in ((tokens, DataConfig()), (alone, remote)):
        outputs = [tmp_path / f"{folder.name} {name}" for name in ("checkpoint", "curve")]
        for path in outputs:
            path.mkdir()
        config = train_config(ranks=2).model_copy(update={"data": data})
        train(folder, tmp_path / "corpus/concepts", *outputs, config)
        written.append([contracts.manifest_of(path).digest for path in outputs])
    assert written[0] == written[1]


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
