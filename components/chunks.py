"""The text of chunks: Chunks@1 holds offsets alone, the characters stay in Documents@1."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from components import contracts

_DOCUMENT_COLUMNS = ("source", "domain", "licence", "title", "split")


def texts(documents: Path, chunks: Path, rows: int) -> Iterator[dict[str, list]]:  # type: ignore[type-arg]
    """Batches of chunk columns with `text` and the document's provenance, in chunk order."""
    for batch in ChunkRows(documents, chunks, (*_DOCUMENT_COLUMNS, "text")).batches(rows):
        bounds = zip(batch["text"], batch["start"], batch["end"], strict=True)
        yield {**batch, "text": [text[start:end] for text, start, end in bounds]}


class ChunkRows:
    """Chunks with columns of their documents, which are read once and kept."""

    def __init__(self, documents: Path, chunks: Path, columns: Sequence[str]) -> None:
        self._documents, self._chunks = documents, chunks
        table = contracts.read(documents, contracts.DOCUMENTS, ("doc_id", *columns))
        self._columns = {name: table.column(name).to_pylist() for name in columns}
        self._row_of = {
            doc_id: row for row, doc_id in enumerate(table.column("doc_id").to_pylist())
        }

    def batches(self, rows: int) -> Iterator[dict[str, list]]:  # type: ignore[type-arg]
        """Batches of chunk columns and those of the documents, in chunk order."""
        for batch in contracts.stream(self._chunks, contracts.CHUNKS, rows=rows):
            documents_of = [
                _row(self._row_of, doc_id, self._chunks, self._documents)
                for doc_id in batch["doc_id"]
            ]
            joined = {
                name: [column[row] for row in documents_of]
                for name, column in self._columns.items()
            }
            yield {**batch, **joined}


class ChunkTexts:
    """The texts of some chunks: of documents, only the row groups they lie in are read."""

    def __init__(self, documents: Path, chunks: Path) -> None:
        self._documents, self._chunks = documents, chunks

    def between(self, start: int, end: int) -> list[str]:
        """Texts of chunks start … end − 1, in order."""
        wanted = _rows(self._chunks, start, end, ("doc_id", "start", "end"))
        doc_ids = wanted.column("doc_id").to_pylist()
        rows = [_row(self._row_of, doc_id, self._chunks, self._documents) for doc_id in doc_ids]
        first = min(rows, default=0)
        texts = _rows(self._documents, first, max(rows, default=-1) + 1, ("text",))
        text = texts.column("text").to_pylist()
        bounds = zip(
            wanted.column("start").to_pylist(), wanted.column("end").to_pylist(), strict=True
        )
        return [text[row - first][low:high] for row, (low, high) in zip(rows, bounds, strict=True)]

    def at(self, chunk_ids: Sequence[int]) -> list[str]:
        """Texts of these chunks, in this order; no row group is read twice."""
        bounds = dict(_picked(self._chunks, chunk_ids, ("doc_id", "start", "end")))
        chunks_of = defaultdict(list)
        for chunk_id, (doc_id, *_) in bounds.items():
            row = _row(self._row_of, doc_id, self._chunks, self._documents)
            chunks_of[row].append(chunk_id)
        found = {}
        for row, (text,) in _picked(self._documents, chunks_of, ("text",)):
            for chunk_id in chunks_of[row]:
                _, start, end = bounds[chunk_id]
                found[chunk_id] = text[start:end]
        return [found[chunk_id] for chunk_id in chunk_ids]

    @cached_property
    def _row_of(self) -> dict[str, int]:
        table = pq.read_table(self._documents / contracts.ROWS_FILE, columns=["doc_id"])
        return {doc_id: row for row, doc_id in enumerate(table.column("doc_id").to_pylist())}


def _rows(folder: Path, start: int, end: int, columns: tuple[str, ...]) -> pa.Table:
    """Rows start … end − 1 of an artifact's table, from the row groups that hold them."""
    with pq.ParquetFile(folder / contracts.ROWS_FILE) as parquet:
        groups = [parquet.metadata.row_group(n).num_rows for n in range(parquet.num_row_groups)]
        ends = list(accumulate(groups))
        held = [n for n, last in enumerate(ends) if last > start and last - groups[n] < end]
        if not held:
            return parquet.schema_arrow.empty_table().select(list(columns))
        table = parquet.read_row_groups(held, columns=list(columns))
        return table.slice(start - (ends[held[0]] - groups[held[0]]), end - start)


def _picked(
    folder: Path, rows: Iterable[int], columns: Sequence[str]
) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Some rows of an artifact's table and their values, in the table's order."""
    waiting, first = sorted(set(rows)), 0
    with pq.ParquetFile(folder / contracts.ROWS_FILE) as parquet:
        for n in range(parquet.num_row_groups):
            end = first + parquet.metadata.row_group(n).num_rows
            here = waiting[bisect_left(waiting, first) : bisect_left(waiting, end)]
            if here:
                group = parquet.read_row_group(n, columns=list(columns))
                taken = group.take([row - first for row in here])
                values = zip(*(taken.column(name).to_pylist() for name in columns), strict=True)
                yield from zip(here, values, strict=True)
            first = end


def _row(row_of: dict[str, int], doc_id: str, chunks: Path, documents: Path) -> int:
    if doc_id not in row_of:
        raise contracts.ContractError(
            f"{chunks} has chunks of document {doc_id}, which is not in {documents}. "
            f"Were they cut from another corpus? Run `clearstory rerun --from chunk`."
        )
    return row_of[doc_id]
