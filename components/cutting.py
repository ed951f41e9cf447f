"""A text into chunks, the stretches that carry concepts (paper §4, Atlas stage one).

It is taken apart at its strongest boundaries first and put together again greedily, so that
chunks have 96-128 word pieces where the text allows and end where a reader would end them. Chunks
cover the document: each starts where the one before it ended.

    ok                    ends at boundaries of the text
    long                  part of a sentence or line that is longer than the limit, cut at a space
    segmentation_error    cut inside a word, since there was no space either
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from components import boundaries
from components.cutting_config import CutConfig
from components.embedding import WordPieces


@dataclass(frozen=True)
class Piece:
    """Characters `start` to `end` of a text."""

    start: int
    end: int
    n_wordpieces: int
    status: str
    closes_at: float = float("inf")
    """Length, in word pieces, from which on the chunk before it is long enough to end here."""


def cut(text: str, word_pieces: WordPieces, config: CutConfig, *, is_code: bool) -> list[Piece]:
    """Chunks of one text, in order."""
    return _put_together(_Text(text, word_pieces, config, is_code=is_code), config)


class _Text:
    """A text with its word pieces and the places to cut it at."""

    def __init__(
        self, text: str, word_pieces: WordPieces, config: CutConfig, *, is_code: bool
    ) -> None:
        self.text = text
        self.config = config
        self.starts = word_pieces(text)
        self.levels = boundaries.levels(text, is_code=is_code)

    def n_wordpieces(self, start: int, end: int) -> int:
        first, last = np.searchsorted(self.starts, (start, end))
        return int(last - first)

    def size(self, start: int, end: int) -> int:
        """Word pieces, or what as many characters usually have where an encoder sees too few."""
        by_chars = -(-(end - start) // self.config.max_chars_per_wordpiece)
        return max(self.n_wordpieces(start, end), by_chars)

    def pieces(self) -> Iterator[Piece]:
        """The text taken apart, no piece longer than the limit."""
        yield from self._split(0, len(self.text), 0, float("inf"))

    def _split(self, start: int, end: int, depth: int, closes_at: float) -> Iterator[Piece]:
        if self.size(start, end) <= self.config.target_max:
            yield self._piece(start, end, "ok", closes_at)
        elif depth == len(self.levels):
            yield from self._cut_sentence(start, end, closes_at)
        else:
            level = self.levels[depth]
            edges = self._edges(level.places, start, end)
            for at, (left, right) in enumerate(pairwise(edges)):
                closes = level.closes_at * self.config.target_min if at else closes_at
                yield from self._split(left, right, depth + 1, closes)

    def _cut_sentence(self, start: int, end: int, closes_at: float) -> Iterator[Piece]:
        """What has no boundary inside: whole up to the hard limit, else cut at spaces."""
        if self.size(start, end) <= self.config.hard_max:
            yield self._piece(start, end, "ok", closes_at)
            return
        spaces = boundaries.spaces(self.text[start:end]) + start
        starts_inside_word = False
        while start < end:
            reach = end if self.size(start, end) <= self.config.hard_max else self._reach(start)
            before = int(np.searchsorted(spaces, reach, side="right")) - 1
            at_space = reach == end or (before >= 0 and spaces[before] > start)
            stop = int(spaces[before]) if at_space and reach < end else reach
            status = "long" if at_space and not starts_inside_word else "segmentation_error"
            yield self._piece(start, stop, status, closes_at)
            start, closes_at, starts_inside_word = stop, float("inf"), not at_space

    def _reach(self, start: int) -> int:
        """The furthest end of a piece of target length, no letter apart from its marks."""
        first = int(np.searchsorted(self.starts, start, side="right"))
        next_start = self.starts[first + self.config.target_max - 1 :][:1].tolist()
        by_chars = start + self.config.target_max * self.config.max_chars_per_wordpiece
        reach = min([by_chars, *next_start])
        return max(boundaries.before_marks(self.text, reach), start + 1)

    def _edges(self, places: boundaries.Places, start: int, end: int) -> list[int]:
        first, last = np.searchsorted(places, (start + 1, end))
        return [start, *places[first:last].tolist(), end]

    def _piece(self, start: int, end: int, status: str, closes_at: float) -> Piece:
        return Piece(start, end, self.n_wordpieces(start, end), status, closes_at)


def _put_together(text: _Text, config: CutConfig) -> list[Piece]:
    """Join neighbours greedily; what is too short to stand alone joins beyond the target."""
    chunks: list[Piece] = []
    for piece in text.pieces():
        if chunks and _belongs(chunks[-1], piece, text, config):
            chunks[-1] = _joined(chunks[-1], piece, text)
        else:
            chunks.append(piece)
    if len(chunks) > 1 and text.size(chunks[-1].start, chunks[-1].end) < config.min_wordpieces:
        *rest, before, tail = chunks
        if text.size(before.start, tail.end) <= config.hard_max:
            return [*rest, _joined(before, tail, text)]
    return chunks


def _belongs(current: Piece, piece: Piece, text: _Text, config: CutConfig) -> bool:
    size = text.size(current.start, current.end)
    joined = text.size(current.start, piece.end)
    if size < config.min_wordpieces or text.size(piece.start, piece.end) == 0:
        return joined <= config.hard_max
    return joined <= config.target_max and size < piece.closes_at


def _joined(left: Piece, right: Piece, text: _Text) -> Piece:
    status = max(left.status, right.status, key=("ok", "long", "segmentation_error").index)
    n_wordpieces = text.n_wordpieces(left.start, right.end)
    return Piece(left.start, right.end, n_wordpieces, status, left.closes_at)
