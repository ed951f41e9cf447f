"""Training chunks similar to what a network represents: reads Index@1 (paper §6.1.3).

    mean state of a chunk's tokens  ->  transducer  ->  FAISS  ->  rows with source and licence

Similarity of meaning, in the chunk encoder's eyes: provenance for an audit, no claim of influence.

Shape suffixes: Q queries   D width of a state   K rows found
"""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor

from components import contracts, nearest
from components.contracts import ContractError
from components.nearest import VectorIndex
from model import transducer as transducers
from model.transducer import Transducer

_WIDER = 4
"""Rows fetched for each row wanted, so that duplicates can be dropped."""


@dataclass(frozen=True)
class Source:
    """A training chunk that was found."""

    chunk_id: int
    doc_id: str
    source: str
    domain: str
    licence: str
    title: str
    text: str
    cosine: float


@dataclass(frozen=True)
class Retriever:
    """An opened index, its transducer and the table of its rows."""

    index: VectorIndex
    transducer: Transducer
    rows: pa.Table

    def find(self, state_QD: Tensor, k: int) -> list[list[Source]]:
        """The k most similar chunks of each mean state; a text that occurs twice counts once."""
        with torch.no_grad():
            query_QE = self.transducer(state_QD).numpy()
        found = self.index.search(query_QE, min(self.index.n, _WIDER * k))
        return [
            self._distinct(rows, cosines, k)
            for rows, cosines in zip(found.rows_QK.tolist(), found.cosine_QK.tolist(), strict=True)
        ]

    def _distinct(self, rows: list[int], cosines: list[float], k: int) -> list[Source]:
        sources: dict[str, Source] = {}
        for row, cosine in zip(rows, cosines, strict=True):
            if row >= 0 and len(sources) < k:
                source = self._source(row, cosine)
                sources.setdefault(" ".join(source.text.split()), source)
        return list(sources.values())

    def _source(self, row: int, cosine: float) -> Source:
        (found,) = self.rows.slice(row, 1).to_pylist()
        return Source(
            found["chunk_id"], found["doc_id"], found["source"], found["domain"],
            found["licence"], found["title"], found["text"], cosine,
        )  # fmt: skip


def open_index(index: Path, checkpoint: Path) -> Retriever:
    """Open an index for a checkpoint. Refuses one that was built for another."""
    contracts.verify(index, contracts.INDEX)
    facts = contracts.json_file(index, "index.json")
    digest = contracts.verify(checkpoint, contracts.CHECKPOINT).digest
    if facts["checkpoint_digest"] != digest:
        raise ContractError(
            f"{index} was built for the checkpoint {str(facts['checkpoint_digest'])[:12]}…, but "
            f"{checkpoint} is {digest[:12]}…: its transducer does not know these states. "
            f"Run `clearstory rerun --from {contracts.INDEX.written_by}`."
        )
    table = nearest.load(index / "index.faiss", str(facts["kind"]))
    rows = pq.read_table(index / contracts.ROWS_FILE)
    assert table.n == rows.num_rows, f"{table.n} vectors but {rows.num_rows} rows in {index}"
    return Retriever(table, transducers.load(index / "transducer.safetensors"), rows)
