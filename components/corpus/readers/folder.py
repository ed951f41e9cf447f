"""A folder of .txt, .md, .jsonl and .parquet files: a document a file, or a document a row."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from components.corpus.config import FolderSource, folder_digest
from components.corpus.record import Record, Refusal

SUFFIXES = (".txt", ".md", ".jsonl", ".parquet")


class CorpusError(ValueError):
    """The corpus cannot be made of what was given. The message says why and the way out."""


def read(source: FolderSource) -> Iterator[Record | Refusal]:
    """Every readable file below the folder; the others are refused one by one."""
    folder = Path(source.folder)
    if not folder.is_dir():
        raise CorpusError(
            f"{folder} is not a folder; name one that holds {', '.join(SUFFIXES)} files"
        )
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    if not any(path.suffix in SUFFIXES for path in paths):
        found = sorted({path.suffix or path.name for path in paths})
        holds = f"only {', '.join(found)}" if found else "nothing"
        raise CorpusError(
            f"{folder} holds {holds}; a corpus is made of {', '.join(SUFFIXES)} files"
        )
    if source.digest and folder_digest(folder) != source.digest:
        raise CorpusError(
            f"the files of {folder} changed since this run was set up; start the run again, so "
            f"that it says which text it read"
        )
    for path in paths:
        yield from _of_file(path, path.relative_to(folder), source)


def _of_file(path: Path, inside: Path, source: FolderSource) -> Iterator[Record | Refusal]:
    locator = inside.as_posix()
    if path.suffix in (".txt", ".md"):
        yield _from_text(path, inside, source)
    elif path.suffix == ".jsonl":
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _from_json(line, f"{locator}:{number}", inside, source)
    elif path.suffix == ".parquet":
        yield from _from_parquet(path, inside, source)
    else:
        yield Refusal(locator, "unknown_extension")


def _from_text(path: Path, inside: Path, source: FolderSource) -> Record | Refusal:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        return Refusal(inside.as_posix(), "not_utf8")
    return _record({"text": text, "title": path.stem}, inside.as_posix(), inside, source)


def _from_json(line: bytes, locator: str, inside: Path, source: FolderSource) -> Record | Refusal:
    try:
        row = json.loads(line)
    except UnicodeDecodeError:
        return Refusal(locator, "not_utf8")
    except json.JSONDecodeError:
        return Refusal(locator, "not_json")
    if not isinstance(row, dict):
        return Refusal(locator, "not_json")
    return _record(row, locator, inside, source)


def _from_parquet(path: Path, inside: Path, source: FolderSource) -> Iterator[Record | Refusal]:
    locator = inside.as_posix()
    try:
        parquet = pq.ParquetFile(path)
    except pa.ArrowInvalid:
        yield Refusal(locator, "not_parquet")
        return
    with parquet:
        rows = (row for batch in parquet.iter_batches() for row in batch.to_pylist())
        for number, row in enumerate(rows):
            yield _record(row, f"{locator}:{number}", inside, source)


def _record(
    row: Mapping[str, object], locator: str, inside: Path, source: FolderSource
) -> Record | Refusal:
    text = row.get("text")
    if not isinstance(text, str):
        return Refusal(locator, "no_text")
    folder = Path(source.folder).resolve().name
    return Record(
        source=folder,
        source_version=source.digest[:12] or "unversioned",
        locator=locator,
        domain=source.domain or str(row.get("domain") or inside.parent.name or folder),
        licence=str(row.get("licence") or source.licence),
        title=str(row.get("title") or inside.stem),
        text=text,
    )
