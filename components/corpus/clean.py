"""What every text goes through before it is a document: cleaning, refusing, cutting."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace

from components.corpus.config import CorpusConfig
from components.corpus.record import Record, Refusal

# The widest gap comes first: between definitions or sections, paragraphs, lines, words.
_GAPS = ("\n\n\n", "\n\n", "\n", " ")

# Text has hardly any control characters; a file that has more than one in a hundred is not text.
_MAX_CONTROL_SHARE = 0.01
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd\ufeff]")
_WIDE_GAP = re.compile(r"\n{4,}")
_LINE_END = re.compile(r"[ \t]+$", re.MULTILINE)


def documents_of(found: Record, config: CorpusConfig) -> Iterator[Record | Refusal]:
    """The cleaned text, in parts where it is too long, or the reason why it is none."""
    n_bytes = len(found.text.encode(errors="replace"))
    if n_bytes > config.max_document_bytes:
        yield Refusal(found.locator, "too_large")
        return
    if len(_CONTROL.findall(found.text)) > _MAX_CONTROL_SHARE * len(found.text):
        yield Refusal(found.locator, "not_text")
        return
    text = cleaned(found.text)
    if len(text) < config.min_chars:
        yield Refusal(found.locator, "too_short")
        return
    parts = list(cut(text, config.max_chars))
    for number, part in enumerate(parts, start=1):
        place = f"{found.locator}#part{number}" if len(parts) > 1 else found.locator
        yield replace(found, text=part, locator=place)


def cleaned(text: str) -> str:
    """One form for one text: NFC, `\\n` line ends, no control characters, no trailing blanks."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _CONTROL.sub("", text.encode(errors="replace").decode())
    text = _LINE_END.sub("", unicodedata.normalize("NFC", text))
    return _WIDE_GAP.sub("\n\n\n", text).strip("\n").rstrip()


def cut(text: str, max_chars: int) -> Iterator[str]:
    """Parts of at most `max_chars`, of similar lengths, cut at the widest gaps there are."""
    while len(text) > max_chars:
        n_parts = -(-len(text) // max_chars)
        place = _gap_near(text, wanted=len(text) // n_parts, last=max_chars)
        part, text = text[:place].rstrip(), text[place:].strip("\n")
        if part:
            yield part
    if text.strip():
        yield text


def _gap_near(text: str, wanted: int, last: int) -> int:
    """The widest gap between half of the wanted length and `last`, nearest to the wanted one."""
    for gap in _GAPS:
        after = text.find(gap, wanted, last)
        before = text.rfind(gap, wanted // 2, wanted)
        places = [place for place in (before, after) if place > 0]
        if places:
            return min(places, key=lambda place: abs(place - wanted)) + len(gap)
    return last
