"""Encoding: the same vectors however it is cut and done, and only what is missing is done again."""

import json
from pathlib import Path

import numpy as np
import pytest

from components import contracts, embedding, hashing
from components.atlas.config import EmbedConfig
from components.atlas.vectors import embed
from components.chunks import ChunkTexts
from components.engine_config import EngineConfig
from components.hashing import HashingEmbedder
from tests.components.written_chunks import N, write_chunks


def in_shards_of(shard_chunks: int, n_workers: int = 1) -> EmbedConfig:
    return EmbedConfig(
        encoder=hashing.NAME, batch_chunks=2, shard_chunks=shard_chunks,
        engine=EngineConfig(n_workers=n_workers),
    )  # fmt: skip


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Path]:
    return write_chunks(tmp_path)


def encoded(given: dict[str, Path], folder: Path, config: EmbedConfig, **more: object) -> Path:
    folder.mkdir()
    embed(given["documents"], given["chunks"], folder, config, **more)
    return folder


def test_shards_of_any_size_give_the_vectors_of_all_texts_at_once(given, tmp_path):
    texts = ChunkTexts(given["documents"], given["chunks"]).between(0, N)
    expected = HashingEmbedder().embed(texts).astype(np.float16)
    folders = [
        encoded(given, tmp_path / str(size), in_shards_of(size)) for size in (2, 6, 22, 24, 9_998)
    ]
    np.testing.assert_array_equal(np.load(folders[0] / "vectors.npy"), expected)
    assert len({contracts.manifest_of(folder).digest for folder in folders}) == 1


def test_batches_begin_at_the_same_chunks_however_long_shards_are(given, tmp_path, monkeypatch):
    class Together(HashingEmbedder):
        """A text's vector says how many it was encoded with, and which it was of them."""

        def embed(self, texts):
            return np.array([[len(texts), at] for at in range(len(texts))], dtype=np.float32)

        width = 2

    monkeypatch.setattr(embedding, "load", lambda name, n_workers: Together())
    for size in (2, 8, 24):
        folder = encoded(given, tmp_path / str(size), in_shards_of(size))
        found = np.load(folder / "vectors.npy").tolist()
        assert found == [[2, 0], [2, 1]] * 11 + [[1, 0]]


def test_a_corpus_without_chunks_has_no_vectors(given, tmp_path):
    contracts.write([], given["chunks"], contracts.CHUNKS)
    folder = encoded(given, tmp_path / "none", in_shards_of(4))
    assert np.load(folder / "vectors.npy").shape == (0, HashingEmbedder.width)


def test_shards_that_were_finished_are_kept_and_damaged_ones_made_again(given, tmp_path):
    whole = contracts.manifest_of(encoded(given, tmp_path / "whole", in_shards_of(4)))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    encoded(given, tmp_path / "first", in_shards_of(4), scratch=scratch)
    shards = sorted((scratch / "shards").glob("*.npy"))
    before = shards[1].stat().st_mtime_ns
    shards[2].write_bytes(b"torn")
    shards[3].with_suffix(".json").unlink()
    told = []
    again = encoded(given, tmp_path / "again", in_shards_of(4), events=told.append, scratch=scratch)
    assert shards[1].stat().st_mtime_ns == before
    assert told[0].message == "goes on with 2 of 6 shards; 15 of 23 chunks were encoded before"
    assert [event.step for event in told] == [15, 19, 23]
    assert contracts.manifest_of(again) == whole


def test_shards_that_a_run_of_another_shard_size_left_are_not_mistaken(given, tmp_path):
    whole = contracts.manifest_of(encoded(given, tmp_path / "whole", in_shards_of(24)))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    encoded(given, tmp_path / "first", in_shards_of(10), scratch=scratch)
    told = []
    again = encoded(given, tmp_path / "again", in_shards_of(4), events=told.append, scratch=scratch)
    # Chunks 20 to 22 were a shard in both.
    assert told[0].message == "goes on with 5 of 6 shards; 3 of 23 chunks were encoded before"
    assert contracts.manifest_of(again) == whole


def test_shards_of_another_encoder_are_made_again_or_refused(given, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    encoded(given, tmp_path / "first", in_shards_of(4), scratch=scratch)
    facts = sorted((scratch / "shards").glob("*.json"))
    for path in facts[2:4]:
        path.write_text(json.dumps({**json.loads(path.read_text()), "encoder_digest": "other"}))
    told = []
    encoded(given, tmp_path / "again", in_shards_of(4), events=told.append, scratch=scratch)
    assert [event.step for event in told] == [15, 19, 23]

    class OfAnotherMachine(HashingEmbedder):
        @property
        def digest(self):
            told.append("asked")
            return f"digest {len(told)}"

    monkeypatch.setattr(embedding, "load", lambda name, n_workers: OfAnotherMachine())
    with pytest.raises(contracts.ContractError, match=r"give all machines the same weights"):
        encoded(given, tmp_path / "mixed", in_shards_of(6))


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [2, 3])
def test_any_number_of_workers_writes_the_same_bytes(n_workers, given, tmp_path):
    one = encoded(given, tmp_path / "one", in_shards_of(4))
    several = encoded(given, tmp_path / "several", in_shards_of(4, n_workers))
    assert contracts.manifest_of(one) == contracts.manifest_of(several)


def test_workers_without_a_shard_are_threads_of_those_that_have_one(given, tmp_path, monkeypatch):
    threads = []
    monkeypatch.setattr(
        embedding, "load", lambda name, n_workers: threads.append(n_workers) or HashingEmbedder()
    )
    encoded(given, tmp_path / "one", in_shards_of(24, n_workers=5))
    assert threads == [5]
