"""Where a text may be cut, from strong places to weak ones (paper §4, Atlas stage one).

    prose    headings, paragraphs, list items, sentences, lines
    code     top-level definitions, blank lines, lines

and in both, where no piece is short enough yet, white space. A place is the character at which the
next piece starts, so a cut keeps every character.

Every pattern is linear in the text: no run of signs, of any length, is scanned from each of its
characters.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]

_HEADING = re.compile(
    r"^(?:\#{1,6}[ \t]+\S.*"
    r"|\S.*\n(?:={3,}|-{3,}|~{3,}|\^{3,})[ \t]*$"
    r"|(?:ACT|SCENE|CHAPTER|BOOK|PART|CANTO)\b.{0,60}$"
    r"|[A-Z][A-Z0-9 ,'’-]{3,60}$)",
    re.MULTILINE,
)
_PARAGRAPH = re.compile(r"\n\s*\n")
_LIST_ITEM = re.compile(r"^[ \t]*(?:[-*+•‣][ \t]|\(?(?:\d{1,3}|[a-z])[.)][ \t])", re.MULTILINE)
_SENTENCE = re.compile(
    r"(?<![.!?…])(?<![\s.][A-Za-z])(?<!\b(?:Mr|Dr|St|vs|cf))(?<!\b(?:Mrs|e\.g|i\.e|etc))"
    r"[.!?…]+[\"'”’)\]]*\s+(?=[^a-z\s])|[。！？][」』”]?"
)
_LINE = re.compile(r"\n+")
_SPACE = re.compile(r"\s+")
_DEFINITION = re.compile(
    r"^(?:@\w|(?:async )?def \w|class \w|if __name__|(?:export |pub |static |public |private )*"
    r"(?:fn|func|function|interface|struct|enum|impl|trait|namespace|module|template)\b)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Level:
    """Places of one strength.

    `closes_at` is the share of the least target length from which on a chunk ends at such a place
    although more would fit: none (infinite) where the place is only somewhere to cut if need be.
    """

    places: Places
    closes_at: float = float("inf")


def levels(text: str, *, is_code: bool) -> list[Level]:
    """Places that a reader would cut at, strongest first."""
    if is_code:
        return [
            Level(_definitions(text), closes_at=0.5),
            Level(_ends(_PARAGRAPH, text), closes_at=1.0),
            Level(_ends(_LINE, text)),
        ]
    return [
        Level(_starts(_HEADING, text), closes_at=0.5),
        Level(_ends(_PARAGRAPH, text), closes_at=1.0),
        Level(_starts(_LIST_ITEM, text)),
        Level(_ends(_SENTENCE, text)),
        Level(_ends(_LINE, text)),
    ]


def spaces(text: str) -> Places:
    """Starts of words: where a sentence or line that is too long must be cut."""
    return _ends(_SPACE, text)


def _definitions(text: str) -> Places:
    """A definition starts at the first of its decorators."""
    starts = [
        start
        for start in _starts(_DEFINITION, text).tolist()
        if not text.startswith("@", text.rfind("\n", 0, max(start - 1, 0)) + 1, start)
    ]
    return np.array(starts, dtype=np.int64)


def _starts(pattern: re.Pattern[str], text: str) -> Places:
    return np.array([match.start() for match in pattern.finditer(text)], dtype=np.int64)


def _ends(pattern: re.Pattern[str], text: str) -> Places:
    return np.array([match.end() for match in pattern.finditer(text)], dtype=np.int64)
