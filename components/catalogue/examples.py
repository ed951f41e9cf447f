"""Chunks of a run that carry a concept, the surest first, with where their text is from."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from components import contracts, parts
from components.library import Concept, Library
from components.run_folder import RunFolder

NEEDED = (contracts.LABELS, contracts.CHUNKS, contracts.DOCUMENTS)
"""What a run must hold to show examples."""


@dataclass(frozen=True)
class Example:
    """A labelled chunk."""

    chunk_id: int
    score: float
    source: str
    licence: str
    title: str
    text: str


def examples(run: RunFolder, library: Library, concept: Concept, n: int) -> list[Example]:
    """The n chunks with the highest score for the concept, by chunk where scores are equal.

    Raises ContractError if the run's labels are those of another library.
    """
    labels, chunks, documents = (run.artifact(contract) for contract in NEEDED)
    made_with = contracts.json_file(labels, "labels.json")["library_digest"]
    if made_with != library.digest:
        raise contracts.ContractError(
            f"the labels of {run.folder.name} are of library {str(made_with)[:16]}, its concepts "
            f"are {library.digest[:16]}: their ids mean other concepts. Run `clearstory rerun "
            f"{run.folder.name} --from learn`, or ask for no chunks with --examples 0."
        )
    found = _rows(labels, "concept_id", [concept.concept_id]).to_pylist()
    found = sorted(found, key=lambda row: (-row["score"], row["chunk_id"]))[:n]
    if not found:
        return []
    chunk = _by(_rows(chunks, "chunk_id", [row["chunk_id"] for row in found]), "chunk_id")
    document = _by(_rows(documents, "doc_id", [row["doc_id"] for row in chunk.values()]), "doc_id")
    made = []
    for row in found:
        place = chunk[row["chunk_id"]]
        whole = document[place["doc_id"]]
        text = whole["text"][place["start"] : place["end"]]
        made.append(
            Example(row["chunk_id"], row["score"], whole["source"], whole["licence"],
                    whole["title"], text)
        )  # fmt: skip
    return made


def _rows(folder: Path, column: str, wanted: Iterable[object]) -> pa.Table:
    """Rows of a verified artifact whose column is one of these; the rest is not kept in memory."""
    found = parts.paths(folder, contracts.manifest_of(folder).files)
    return pq.read_table(found, filters=[(column, "in", list(wanted))])


def _by(table: pa.Table, column: str) -> dict[object, dict[str, Any]]:
    return {row[column]: row for row in table.to_pylist()}
