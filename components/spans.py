"""The span table of a token stream, whole: provenance, domains and labels of every chunk.

What reads all chunks (index, lifted words, evaluation) reads this. Training does not, where the
stream is in shards: it finds spans by the records beside each shard (`components.shards`).

Shape suffixes used in this file:
    M place for a concept   N rows, anything flat
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from components.order import Integers
from components.shards import MAX_CONCEPTS, Stretch, StretchSpans


@dataclass(frozen=True)
class Spans:
    """Columns of the span table, row by row; `token_start` rises and spans leave no gap."""

    chunk_id: Integers
    doc_id: list[str]
    split: list[str]
    domain: list[str]
    token_start: Integers
    token_end: Integers
    n_bytes: Integers
    labelled: NDArray[np.bool_]
    concepts_NM: Integers

    def __len__(self) -> int:
        return len(self.chunk_id)

    def of(self, stretches: Sequence[Stretch]) -> list[StretchSpans]:
        """The spans of stretches of the stream, as `components.shards.SpanSource` gives them."""
        edges = np.array(stretches, dtype=np.int64).reshape(-1, 2)
        lows = np.searchsorted(self.token_start, edges[:, 0], side="right") - 1
        highs = np.searchsorted(self.token_start, edges[:, 1], side="left")
        return [
            StretchSpans(
                row_N=np.arange(low, high),
                token_start_N=self.token_start[low:high],
                chunk_id_N=self.chunk_id[low:high],
                labelled_N=self.labelled[low:high],
                concepts_NM=self.concepts_NM[low:high],
            )
            for low, high in zip(lows.tolist(), highs.tolist(), strict=True)
        ]

    def windows_by_domain(self, start: int, end: int, length: int) -> dict[str, Integers]:
        """Windows of start … end − 1 by the domain that most of their tokens belong to."""
        names = sorted({name for name in self.domain if name})
        code_of = {name: code for code, name in enumerate(names)}
        code_N = np.array([code_of.get(name, -1) for name in self.domain])
        rows = np.flatnonzero((self.token_start < end) & (self.token_end > start) & (code_N >= 0))
        votes = np.zeros((-(-(end - start) // length), len(names)), dtype=np.int64)
        first_N = np.maximum(self.token_start[rows], start) - start
        last_N = np.minimum(self.token_end[rows], end) - start
        while len(rows):  # each turn counts what every span has in the first window it reaches
            window_N = first_N // length
            until_N = np.minimum(last_N, (window_N + 1) * length)
            np.add.at(votes, (window_N, code_N[rows]), until_N - first_N)
            left = until_N < last_N
            rows, first_N, last_N = rows[left], until_N[left], last_N[left]
        winner = votes.argmax(axis=1)
        found = {name: np.flatnonzero(winner == code) for code, name in enumerate(names)}
        return {name: windows for name, windows in found.items() if len(windows)}


def read(path: Path) -> Spans:
    """The table of a verified Tokens artifact."""
    table = pq.read_table(path).combine_chunks()
    concepts = table.column("concept_ids")
    lengths = pc.list_value_length(concepts).to_numpy()
    concepts_NM = np.full((len(lengths), MAX_CONCEPTS), -1, dtype=np.int64)
    concepts_NM[np.arange(MAX_CONCEPTS) < lengths[:, None]] = pc.list_flatten(concepts).to_numpy()
    return Spans(
        chunk_id=table.column("chunk_id").to_numpy(),
        doc_id=table.column("doc_id").to_pylist(),
        split=table.column("split").to_pylist(),
        domain=table.column("domain").to_pylist(),
        token_start=table.column("token_start").to_numpy(),
        token_end=table.column("token_end").to_numpy(),
        n_bytes=table.column("n_bytes").to_numpy(),
        labelled=table.column("labelled").to_numpy(),
        concepts_NM=concepts_NM,
    )
