"""Where a text may be cut, from strong places to weak ones (paper §4, Atlas stage one).

    prose    headings, paragraphs, list items, sentences, lines
    code     top-level definitions, blank lines, lines

and in both, where no piece is short enough yet, white space, or the place between two signs of a
script that writes none. A place is the character at which the next piece starts, so a cut keeps
every character; never between a letter and the marks on it.

Sentences end with the signs of many scripts. Latin, Cyrillic, Greek and others want white space
after them and no small letter after that; a danda, an Ethiopic or an ideographic full stop ends a
sentence as it stands. Thai has no such sign: there white space is what there is.

Every pattern is linear in the text: no run of signs, of any length, is scanned from each of its
characters.
"""

import re
import unicodedata
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
_FULL_STOPS = "。！？｡।॥፧።፨។៕။།༎᠃"
"""Signs that end a sentence as they stand: ideographic, danda, Ethiopic, Khmer, Burmese, Tibetan,
Mongolian."""

_ENDS = "!?…؟۔։\u037e"
_SENTENCE = re.compile(
    rf"(?<![.{_ENDS}])"
    rf"(?:[{_ENDS}]|(?<![\s.][^\W\d_])(?<!\b(?:Mr|Dr|St|vs|cf))(?<!\b(?:Mrs|e\.g|i\.e|etc))\.)"
    rf"[.{_ENDS}]*[\"'”’»)\]]*\s+"
    rf"|[{_FULL_STOPS}]+[」』”’）〕】]*\s*"
)
"""After an initial or an abbreviation a full stop ends nothing."""

_LINE = re.compile(r"\n+")
_SPACE = re.compile(r"[\s\u200b\u0f0b\u1361]+")
"""Also the zero-width space, and what Tibetan and Ethiopic set between words."""

_UNSPACED = re.compile(r"(?<=[぀-ヿ㐀-鿿豈-﫿])(?=[぀-ヿ㐀-鿿豈-﫿])")
"""Between ideographs or kana, where words stand without white space."""
_JOINER = "\u200d"
_MOST_MARKS = 16
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
        Level(_sentences(text)),
        Level(_ends(_LINE, text)),
    ]


def spaces(text: str) -> Places:
    """Starts of words: where a sentence or line that is too long must be cut."""
    return np.union1d(_ends(_SPACE, text), _ends(_UNSPACED, text))


def before_marks(text: str, place: int) -> int:
    """The place, or one a little before it where a letter stands apart from the marks on it."""
    for at in range(place, max(place - _MOST_MARKS, 0), -1):
        if not _joins(text[at - 1 : at + 1]):
            return at
    return place


def _joins(pair: str) -> bool:
    """Whether two neighbours are one sign to a reader."""
    if len(pair) < 2:
        return False
    left, right = pair[0], pair[1]
    return (
        unicodedata.category(right)[0] == "M"
        or _JOINER in (left, right)
        or right in "\u0e33\u0eb3"  # Thai and Lao am
        or "\u1160" <= right <= "\u11ff"  # later parts of a Korean syllable
        or "\U0001f3fb" <= right <= "\U0001f3ff"  # tones of skin
        or pair == "\r\n"
    )


def _sentences(text: str) -> Places:
    """Ends of sentences; a small letter after a full stop says that it was an abbreviation."""
    ends = [match.end() for match in _SENTENCE.finditer(text)]
    return np.array([end for end in ends if not _is_small(text[end : end + 1])], dtype=np.int64)


def _is_small(char: str) -> bool:
    """Georgian begins its sentences with what Unicode calls small letters."""
    return char.islower() and not "\u10d0" <= char <= "\u10ff"


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
