"""Chunks into vectors, once for all stages that need them (paper §4, §6.1.3).

    vectors.npy     float16 (N, D), unit length, row = chunk_id
    encoder.json    name, digest, dim and max_wordpieces of the encoder

Shape suffixes: N chunks   D width of a vector
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from components import contracts, embedding
from components.atlas.config import EmbedConfig
from components.chunks import texts
from components.embedding import Embedder, Floats
from model.events import Event, Events, ignore

VECTORS_FILE = "vectors.npy"
ENCODER_FILE = "encoder.json"


def embed(
    documents: Path, chunks: Path, vectors: Path, config: EmbedConfig, events: Events = ignore
) -> int:
    """Encode every chunk. Returns how many there are."""
    n = contracts.verify(chunks, contracts.CHUNKS).rows
    encoder = embedding.load(config.encoder, config.n_workers)
    vectors_ND = open_memmap(
        vectors / VECTORS_FILE, mode="w+", dtype=np.float16, shape=(n, encoder.width)
    )
    done = 0
    for batch in texts(documents, chunks, rows=config.batch_chunks):
        vectors_ND[done : done + len(batch["text"])] = encoder.embed(batch["text"])
        done += len(batch["text"])
        events(Event(step=done, total_steps=n))
    vectors_ND.flush()
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
