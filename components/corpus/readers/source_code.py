"""Source code: the modules of Django, a document each."""

from collections.abc import Iterator

from components import fetch
from components.corpus.readers.order import by_hash
from components.corpus.record import Record
from components.packages import PACKAGES

PACKAGE = PACKAGES["django"]

# Generated or near-identical files: numbers and dates of a hundred languages, database changes.
_SKIPPED = {"locale", "migrations"}


def read() -> Iterator[Record]:
    """Modules as they are. What is too long for a document is cut later, between definitions."""
    root = fetch.package(PACKAGE.name)
    paths = [path for path in root.rglob("*.py") if not _SKIPPED.intersection(path.parts)]
    for path in by_hash(paths, lambda path: path.relative_to(root).as_posix()):
        locator = path.relative_to(root).as_posix()
        yield Record(
            source=PACKAGE.name,
            source_version=PACKAGE.version,
            locator=locator,
            domain="code",
            licence=PACKAGE.licence,
            title=locator,
            text=path.read_text(),
        )
