"""The files of a table: one where it is short, several where it is long.

rows.parquet, rows-000001.parquet, rows-000002.parquet, …    one table, in this order
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from components.manifests import ROWS_FILE  # the first part, which every table has


def name_of(part: int) -> str:
    """The file of the part of this number, counted from 0."""
    return f"rows-{part:06d}.parquet" if part else ROWS_FILE


def paths(folder: Path, files: Iterable[str]) -> list[Path]:
    """The parts among an artifact's files, in the order of the table."""
    further = sorted(
        name for name in files if name.startswith("rows-") and name.endswith(".parquet")
    )
    return [folder / name for name in (ROWS_FILE, *further)]


def read(parts: Sequence[Path], columns: Sequence[str] = ()) -> pa.Table:
    """The whole table, or these columns of it."""
    wanted = list(columns) or None
    return pa.concat_tables([pq.read_table(path, columns=wanted) for path in parts])


def stream(parts: Sequence[Path], rows: int) -> Iterator[pa.RecordBatch]:
    """The table in batches of at most `rows`."""
    for path in parts:
        with pq.ParquetFile(path) as parquet:
            yield from parquet.iter_batches(batch_size=rows)


def other_types(found: pa.Schema, wanted: pa.Schema) -> dict[str, str]:
    """Columns of another type than wanted, with the one they have."""
    return {
        field.name: str(found.field(field.name).type)
        for field in wanted
        if found.field(field.name).type != field.type
    }
