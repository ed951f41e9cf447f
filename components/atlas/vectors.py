"""Chunks into vectors, once for all stages that need them (paper §4, §6.1.3).

    vectors.npy     float16 (N, D), unit length, row = chunk_id
    encoder.json    name, digest, dim and max_wordpieces of the encoder

Vectors of a shard of chunks are written into the stage's scratch folder, where a killed run finds
them (components/atlas/chunk_shards.py); the whole is never in memory.

Shape suffixes: N chunks   D width of a vector
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from components import contracts, embedding
from components.atlas import chunk_shards
from components.atlas.chunk_shards import ChunkShards
from components.atlas.config import EmbedConfig
from components.chunks import ChunkTexts
from components.embedding import Embedder, Floats
from model.events import Events, ignore

VECTORS_FILE = "vectors.npy"
ENCODER_FILE = "encoder.json"


def embed(
    documents: Path,
    chunks: Path,
    vectors: Path,
    config: EmbedConfig,
    events: Events = ignore,
    scratch: Path | None = None,
) -> int:
    """Encode every chunk. Returns how many there are.

    Goes on from the shards in `scratch`, if a killed attempt left some there.
    """
    contracts.verify(documents, contracts.DOCUMENTS)
    n = contracts.verify(chunks, contracts.CHUNKS).rows
    with chunk_shards.folder_in(scratch) as folder:
        shards = _Shards(folder, n, config.shard_chunks, documents, chunks, config)
        encoder = _open(shards).encoder
        chunk_shards.work(shards, config.engine, events, "encoded")
        _put_together(shards, vectors / VECTORS_FILE)
    written = {
        "name": encoder.name,
        "digest": encoder.digest,
        "dim": encoder.width,
        "max_wordpieces": encoder.max_wordpieces,
    }
    (vectors / ENCODER_FILE).write_text(json.dumps(written, indent=1))
    contracts.seal(vectors, contracts.VECTORS, rows=n)
    return n


@dataclass(frozen=True)
class _Shards(ChunkShards):
    """The vectors of one corpus."""

    documents: Path
    chunks: Path
    config: EmbedConfig

    def file(self, shard: int) -> Path:
        """See ChunkShards. Its name says which chunks: another run may have cut other shards."""
        first = self.first(shard)
        return self.folder / f"{first:012d}-{first + self.length(shard):012d}.npy"

    def is_done(self, shard: int) -> bool:
        """See ChunkShards; a name may mean another encoder than it did to a killed run."""
        return self.is_of(_open(self).encoder, shard) and super().is_done(shard)

    def is_of(self, encoder: Embedder, shard: int) -> bool:
        """Whether this encoder made the vectors of a shard, if they are there."""
        return self.facts(shard).get("encoder_digest") == encoder.digest

    def write(self, shard: int, path: Path) -> Mapping[str, object]:
        """See ChunkShards. Batches begin at the same chunks however long shards are."""
        source, n, step = _open(self), self.length(shard), self.config.batch_chunks
        text = source.texts.between(self.first(shard), self.first(shard) + n)
        vectors_ND = np.empty((n, source.encoder.width), dtype=np.float16)
        # One thread, where an encoder's own would change the order of its sums.
        with threadpool_limits(1):
            for start in range(0, n, step):
                vectors_ND[start : start + step] = source.encoder.embed(text[start : start + step])
        np.save(path, vectors_ND)
        return {"encoder_digest": source.encoder.digest}


@dataclass(frozen=True)
class _Source:
    """An encoder and what it encodes."""

    encoder: Embedder
    texts: ChunkTexts


@lru_cache(maxsize=1)
def _open(shards: _Shards) -> _Source:
    """What a worker reads, opened once a process."""
    # Workers without a shard of their own work as threads of those that have one.
    n_threads = max(1, shards.config.engine.n_workers // shards.n)
    encoder = embedding.load(shards.config.encoder, n_threads)
    return _Source(encoder, ChunkTexts(shards.documents, shards.chunks))


def _put_together(shards: _Shards, path: Path) -> None:
    """All shards as one file, a shard at a time."""
    encoder = _open(shards).encoder
    whole_ND = open_memmap(
        path, mode="w+", dtype=np.float16, shape=(shards.n_chunks, encoder.width)
    )
    for shard in range(shards.n):
        if not shards.is_of(encoder, shard):
            raise contracts.ContractError(
                f"{shards.file(shard)} was encoded by a worker whose {encoder.name} is not the one "
                f"here ({encoder.digest[:12]}); give all machines the same weights and run again"
            )
        first = shards.first(shard)
        whole_ND[first : first + shards.length(shard)] = np.load(shards.file(shard), mmap_mode="r")
    whole_ND.flush()


@dataclass(frozen=True)
class ChunkVectors:
    """Vectors@1, opened: rows are read from the file as they are asked for."""

    vectors_ND: NDArray[np.float16]

    def rows(self, chunk_ids: NDArray[np.int64] | list[int]) -> Floats:
        """Unit vectors of these chunks, in this order."""
        return np.asarray(self.vectors_ND[np.asarray(chunk_ids, dtype=np.int64)], dtype=np.float32)


def read(folder: Path, encoder: Embedder) -> ChunkVectors:
    """Vectors@1, verified, which this encoder must have made."""
    contracts.verify(folder, contracts.VECTORS)
    made_by = json.loads((folder / ENCODER_FILE).read_text())
    if made_by["digest"] != encoder.digest:
        raise contracts.ContractError(
            f"{folder} was encoded by {made_by['name']} ({made_by['digest'][:12]}), but this stage "
            f"uses {encoder.name} ({encoder.digest[:12]}). Name the same encoder in both configs "
            f"and run `clearstory rerun --from embed`."
        )
    return ChunkVectors(np.load(folder / VECTORS_FILE, mmap_mode="r"))
