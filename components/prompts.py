"""Prompts taken from the token stream: how documents nobody trained on begin, or chunks about a
concept. What is explained and steered starts from them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

import numpy as np
import torch
from torch import Tensor

from components.order import permuted
from components.tokens import TokenStream


@dataclass(frozen=True)
class Prompt:
    """The first tokens of a document or of a chunk, and where they come from."""

    doc_id: str
    domain: str
    split: str
    ids: tuple[int, ...]

    @property
    def row(self) -> Tensor:
        """As a batch of one row."""
        return torch.tensor([self.ids])


def openings(stream: TokenStream, lengths: Sequence[int], split: str, seed: int) -> list[Prompt]:
    """Beginnings of documents, one for each length, domains in turn; BOS is the first token."""
    by_domain: dict[str, list[int]] = {}
    opened: set[str] = set()
    for row in stream.span_rows(split).tolist():
        doc_id = stream.spans.doc_id[row]
        if doc_id not in opened:
            opened.add(doc_id)
            by_domain.setdefault(stream.spans.domain[row], []).append(row)
    shuffled = [_shuffled(by_domain[domain], seed) for domain in sorted(by_domain)]
    in_turn = [row for row in chain(*zip_longest(*shuffled)) if row is not None]
    return list(_cut(stream, in_turn, lengths))


def about(
    stream: TokenStream, concept_id: int, lengths: Sequence[int], splits: Sequence[str], seed: int
) -> list[Prompt]:
    """Beginnings of chunks labelled with a concept, from the first split that has any left."""
    found: list[Prompt] = []
    for split in splits:
        rows = stream.span_rows(split)
        labelled = rows[(stream.spans.concepts_NM[rows] == concept_id).any(axis=1)]
        shuffled = _shuffled(labelled.tolist(), seed)
        found += _cut(stream, shuffled, lengths[len(found) :])
    return found


def _shuffled(rows: list[int], seed: int) -> list[int]:
    if not rows:
        return []
    return [rows[place] for place in permuted(np.arange(len(rows)), len(rows), seed, epoch=0)]


def _cut(stream: TokenStream, rows: list[int], lengths: Sequence[int]) -> Iterator[Prompt]:
    """The first tokens of as many spans as there are lengths; spans that are too short are left."""
    waiting = iter(rows)
    for length in lengths:
        for row in waiting:
            ids = stream.span_tokens(row)[:length].tolist()
            if len(ids) == length and stream.specials.end_of_chunk_id not in ids:
                spans = stream.spans
                yield Prompt(spans.doc_id[row], spans.domain[row], spans.split[row], tuple(ids))
                break
