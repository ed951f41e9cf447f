"""Rows of the index: training chunks, a text that stands in several places once (paper B.1).

A text is the same where its words are, whatever the white space between them.

Shape suffixes: N chunk   R row
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from components import chunks as chunk_texts
from components import contracts
from components.nearest import Floats
from components.order import Integers

_ROWS = 2_000
_COLUMNS = ("chunk_id", "doc_id", "source", "domain", "licence", "title", "start", "end", "text")


@dataclass(frozen=True)
class IndexedChunks:
    """Training chunks by the row they share, in the order of the chunks that came first."""

    documents: Path
    chunks: Path
    row_of: Mapping[int, int]
    """Row of each training chunk's id."""

    places: Sequence[Sequence[Mapping[str, object]]]
    """Of each row: chunk, document and characters, the chunk that the row speaks of first."""

    @property
    def first_ids(self) -> Integers:
        """Chunk ids (R) whose vectors and texts the rows have."""
        return np.array([places[0]["chunk_id"] for places in self.places], dtype=np.int64)

    def rows(self, first_row: int = 0, first_chunk_id: int = 0) -> Iterator[dict[str, object]]:
        """Rows of Index@1; the numbers begin where those of an index that is added to end."""
        for chunk in training_chunks(self.documents, self.chunks):
            row = self.row_of.get(int(str(chunk["chunk_id"])), -1)
            if row >= 0 and self.places[row][0]["chunk_id"] == chunk["chunk_id"]:
                yield _row(chunk, first_row + row, self.places[row], first_chunk_id)


def collapsed(documents: Path, chunks: Path) -> IndexedChunks:
    """The training chunks, those of one text together."""
    row_of_text: dict[bytes, int] = {}
    row_of: dict[int, int] = {}
    places: list[list[Mapping[str, object]]] = []
    for chunk in training_chunks(documents, chunks):
        row = row_of_text.setdefault(digest(str(chunk["text"])), len(places))
        if row == len(places):
            places.append([])
        places[row].append({name: chunk[name] for name in ("chunk_id", "doc_id", "start", "end")})
        row_of[int(str(chunk["chunk_id"]))] = row
    if not places:
        raise ValueError(
            f"{chunks} has no chunk of a training document, so there is nothing to index; ingest "
            f"more documents"
        )
    return IndexedChunks(documents, chunks, row_of, places)


def training_chunks(documents: Path, chunks: Path) -> Iterator[Mapping[str, object]]:
    """Columns of each chunk of the training split, in order."""
    for batch in chunk_texts.texts(documents, chunks, rows=_ROWS):
        for row, split in enumerate(batch["split"]):
            if split == "train":
                yield {name: batch[name][row] for name in _COLUMNS}


def digest(text: str) -> bytes:
    """What texts of the same words have in common."""
    return sha256(" ".join(text.split()).encode()).digest()


def vectors_of(vectors: Path, chunks: Path) -> Floats:
    """The vectors of all chunks, memory-mapped. Refuses those of other chunks."""
    n_vectors = contracts.verify(vectors, contracts.VECTORS).rows
    n_chunks = contracts.verify(chunks, contracts.CHUNKS).rows
    if n_vectors != n_chunks:
        raise contracts.ContractError(
            f"{vectors} has {n_vectors} vectors but {chunks} has {n_chunks} chunks; they were "
            f"embedded from other chunks. {contracts.again(contracts.VECTORS)}"
        )
    loaded: Floats = np.load(vectors / "vectors.npy", mmap_mode="r")
    return loaded


def _row(
    chunk: Mapping[str, object], row: int, places: Sequence[Mapping[str, object]], shift: int
) -> dict[str, object]:
    shifted = [{**place, "chunk_id": int(str(place["chunk_id"])) + shift} for place in places]
    return {
        **chunk, "row": row, "chunk_id": shifted[0]["chunk_id"], "n_places": len(places),
        "places": shifted,
    }  # fmt: skip
