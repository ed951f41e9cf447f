"""The text of chunks: Chunks@1 holds offsets alone, the characters stay in Documents@1."""

from collections.abc import Iterator
from pathlib import Path

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


def _row(row_of: dict[str, int], doc_id: str, chunks: Path, documents: Path) -> int:
    if doc_id not in row_of:
        raise contracts.ContractError(
            f"{chunks} has chunks of document {doc_id}, which is not in {documents}. "
            f"Were they cut from another corpus? Run `clearstory rerun --from chunk`."
        )
    return row_of[doc_id]
