"""Spans: the stretches of the token stream that tile it, a chunk or the padding of a split each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from components import contracts
from model.tokenizer import SpecialIds

TokenType = np.dtype[np.uint16] | np.dtype[np.uint32]
"""How the stream stores token ids: the narrower one where the vocabulary fits."""


@dataclass(frozen=True)
class Piece:
    """A tokenised chunk and its place in its document."""

    chunk_id: int
    doc_id: str
    split: str
    domain: str
    source: str
    ids: list[int]
    n_bytes: int
    opens_document: bool
    closes_document: bool = False

    def closing(self) -> "Piece":
        """The same chunk, known to be its document's last."""
        return replace(self, closes_document=True)

    def tokens(self, specials: SpecialIds) -> list[int]:
        """The chunk's tokens with the special ones that belong to it."""
        opening = [specials.bos_id] if self.opens_document else []
        closing = [specials.eos_id] if self.closes_document else []
        return [*opening, *self.ids, specials.end_of_chunk_id, *closing]


@dataclass(frozen=True)
class Span:
    """A row of the span table, but for its place in the stream."""

    chunk_id: int
    doc_id: str
    split: str
    domain: str
    source: str
    n_tokens: int
    n_bytes: int
    concept_ids: list[int]


class SplitWriter:
    """Appends chunks to the raw token file of one split."""

    def __init__(self, path: Path, split: str, dtype: TokenType, specials: SpecialIds) -> None:
        self.path = path
        self.spans: list[Span] = []
        self._split = split
        self._dtype = dtype
        self._specials = specials
        self._file = path.open("wb")

    def add(self, piece: Piece, concept_ids: list[int]) -> None:
        """Append a chunk and its labels."""
        tokens = piece.tokens(self._specials)
        self._write(tokens)
        self.spans.append(
            Span(
                chunk_id=piece.chunk_id, doc_id=piece.doc_id, split=self._split,
                domain=piece.domain, source=piece.source, n_tokens=len(tokens),
                n_bytes=piece.n_bytes, concept_ids=concept_ids,
            )
        )  # fmt: skip

    def close(self, block: int) -> None:
        """Pad to whole blocks. Padding is a span of no chunk."""
        missing = -sum(span.n_tokens for span in self.spans) % block
        if missing:
            self._write([self._specials.pad_id] * missing)
            self.spans.append(
                Span(
                    chunk_id=-1, doc_id="", split=self._split, domain="", source="",
                    n_tokens=missing, n_bytes=0, concept_ids=[],
                )
            )  # fmt: skip
        self._file.close()

    def _write(self, tokens: list[int]) -> None:
        self._file.write(np.array(tokens, dtype=self._dtype).tobytes())


def table(spans: Sequence[Span]) -> pa.Table:
    """The span table of a whole stream."""
    n_tokens = np.array([span.n_tokens for span in spans], dtype=np.int64)
    ends = np.cumsum(n_tokens)
    return pa.table(
        {
            "span_id": np.arange(len(spans)),
            "chunk_id": [span.chunk_id for span in spans],
            "doc_id": [span.doc_id for span in spans],
            "split": [span.split for span in spans],
            "domain": [span.domain for span in spans],
            "source": [span.source for span in spans],
            "token_start": ends - n_tokens,
            "token_end": ends,
            "n_bytes": [span.n_bytes for span in spans],
            "labelled": [bool(span.concept_ids) for span in spans],
            "concept_ids": [span.concept_ids for span in spans],
        },
        schema=contracts.TOKENS.schema,
    )
