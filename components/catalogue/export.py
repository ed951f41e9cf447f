"""A library as one file for other programs, in our columns or in the released label table's.

The released layout has no columns for tags, kinds and prevalence. Its groups are our branches. It
says of each concept whether it is about alignment or demographic, which nobody has judged here:
those two columns are null, which the released package reads as no (method §1.3).
"""

import csv
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from components import contracts
from components.library import Concept, Library

Layout = Literal["clearstory", "released"]

RELEASED = pa.schema(
    [
        pa.field("concept_id", pa.int64()),
        pa.field("concept_name", pa.string()),
        pa.field("concept_description", pa.string()),
        pa.field("head", pa.string()),
        pa.field("public_group_id", pa.int64()),
        pa.field("group_name", pa.string()),
        pa.field("is_steerable", pa.bool_()),
        pa.field("is_tone", pa.bool_()),
        pa.field("is_alignment", pa.bool_()),
        pa.field("is_demographic", pa.bool_()),
    ]
)
"""Columns of `concept_labels.parquet`."""


def export(library: Library, path: Path, layout: Layout) -> int:
    """Write the file, in the format of its ending, and return the number of concepts.

    Raises ValueError for an ending that is none of parquet, csv and json, and for the released
    layout in anything but parquet.
    """
    writers: dict[str, Callable[[Library, Path], None]] = (
        {".parquet": _released_parquet}
        if layout == "released"
        else {".parquet": _parquet, ".csv": _csv, ".json": _json}
    )
    if path.suffix not in writers:
        raise ValueError(
            f"{path.name} ends in {path.suffix or 'nothing'}; the {layout} layout is written as "
            f"{' or '.join(writers)}"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    writers[path.suffix](library, partial)
    os.replace(partial, path)
    return len(library.concepts)


def label_table(library: Library) -> pa.Table:
    """The library in the columns of the released label table: known concepts, all steerable."""
    groups = {name: i for i, name in enumerate(sorted({each.parent for each in library.concepts}))}
    rows = [
        {
            "concept_id": each.concept_id,
            "concept_name": each.name,
            "concept_description": each.description,
            "head": "known",
            "public_group_id": groups[each.parent],
            "group_name": each.parent,
            "is_steerable": True,
            "is_tone": each.kind == "tone",
            "is_alignment": None,
            "is_demographic": None,
        }
        for each in library.concepts
    ]
    return pa.Table.from_pylist(rows, schema=RELEASED)


def row_of(concept: Concept) -> dict[str, object]:
    """A concept in the columns of Concepts@1."""
    schema = contracts.CONCEPTS.schema
    assert schema is not None, "Concepts@1 has a table"
    row: dict[str, object] = {name: vars(concept)[name] for name in schema.names}
    return {**row, "members": list(concept.members)}


def _released_parquet(library: Library, path: Path) -> None:
    _put(label_table(library), library, path)


def _parquet(library: Library, path: Path) -> None:
    rows = [row_of(concept) for concept in library.concepts]
    _put(pa.Table.from_pylist(rows, schema=contracts.CONCEPTS.schema), library, path)


def _put(table: pa.Table, library: Library, path: Path) -> None:
    said: Mapping[str, str] = {"library_digest": library.digest}
    pq.write_table(table.replace_schema_metadata(said), path, compression="zstd")


def _csv(library: Library, path: Path) -> None:
    """Tags are one cell, a JSON list, for they may hold any separator."""
    with path.open("w", newline="", encoding="utf-8") as handle:
        rows = [row_of(concept) for concept in library.concepts]
        writer = csv.DictWriter(handle, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            members = json.dumps(row["members"], ensure_ascii=False)
            writer.writerow({**row, "members": members})


def _json(library: Library, path: Path) -> None:
    whole = {
        "library_digest": library.digest,
        "concepts": [row_of(concept) for concept in library.concepts],
    }
    path.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
