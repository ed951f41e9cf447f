"""The text of chunks: Chunks@1 holds offsets alone, the characters stay in Documents@1."""

from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from components import contracts

_DOCUMENT_COLUMNS = ("source", "domain", "licence", "title", "split")


def texts(documents: Path, chunks: Path, rows: int) -> Iterator[dict[str, list]]:  # type: ignore[type-arg]
    """Batches of chunk columns with `text` and the document's provenance, in chunk order."""
    table = contracts.read(documents, contracts.DOCUMENTS)
    columns = {name: table.column(name).to_pylist() for name in (*_DOCUMENT_COLUMNS, "text")}
    row_of = {doc_id: row for row, doc_id in enumerate(table.column("doc_id").to_pylist())}
    for batch in contracts.stream(chunks, contracts.CHUNKS, rows=rows):
        documents_of = [_row(row_of, doc_id, chunks, documents) for doc_id in batch["doc_id"]]
        text = [
            columns["text"][row][start:end]
            for row, start, end in zip(documents_of, batch["start"], batch["end"], strict=True)
        ]
        provenance = {
            name: [columns[name][row] for row in documents_of] for name in _DOCUMENT_COLUMNS
        }
        yield {**batch, **provenance, "text": text}


class ChunkTexts:
    """The texts of any stretch of chunks: of documents, only the row groups it lies in are read."""

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


def _row(row_of: dict[str, int], doc_id: str, chunks: Path, documents: Path) -> int:
    if doc_id not in row_of:
        raise contracts.ContractError(
            f"{chunks} has chunks of document {doc_id}, which is not in {documents}. "
            f"Were they cut from another corpus? Run `clearstory rerun --from chunk`."
        )
    return row_of[doc_id]
