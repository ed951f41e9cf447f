"""Training chunks like each chunk of a generated text (paper §6.1.3).

A chunk is asked for by the mean state of its tokens, read again as the text stands. Special tokens
say nothing and are left out; a chunk of nothing else has no sources.

Shape suffixes: N token of the text, in reading order   M token of a chunk   C chunk of the text
    T position   D width
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from components.retrieval import Retriever, Source
from model.generated_chunks import chunks as generated_chunks
from model.language_model import LanguageModel
from model.tokenizer import Tokenizer
from model.trace import Trace
from model.transducer import mean_states

_SNIPPET_CHARS = 200


@dataclass(frozen=True)
class Chunk:
    """A chunk of the generated text and the training chunks most like it, nearest first."""

    positions: tuple[int, ...]
    sources: list[Source]


@torch.no_grad()
def similar_chunks(
    lm: LanguageModel, tokenizer: Tokenizer, retriever: Retriever, trace: Trace, commits_N: Tensor,
    k: int,
) -> list[Chunk]:  # fmt: skip
    """The text's chunks in order, each with `k` sources; commits come in reading order."""
    position_N = trace.position_N[commits_N]
    spans = [
        position_N[(at.start <= position_N) & (position_N < at.stop)]
        for at in generated_chunks(trace, lm.config.end_of_chunk_id)
    ]
    ids_1T = trace.ids_T[None, : trace.end]
    chunk_1T = torch.full_like(ids_1T, -1)
    for number, position_M in enumerate(spans):
        chunk_1T[0, position_M] = number
    special_ids = torch.tensor(list(tokenizer.special_names))
    chunk_1T = chunk_1T.masked_fill(torch.isin(ids_1T, special_ids), -1)
    state_CD = mean_states(lm.composed(lm.hidden(ids_1T)), chunk_1T, n_chunks=len(spans))
    found = retriever.find(state_CD, k)
    has_text = [bool((chunk_1T == number).any()) for number in range(len(spans))]
    return [
        Chunk(tuple(position_M.tolist()), sources if is_text else [])
        for position_M, sources, is_text in zip(spans, found, has_text, strict=True)
    ]


def chunk_of(chunks: list[Chunk]) -> dict[int, int]:
    """The number of the chunk that each position belongs to."""
    return {position: number for number, chunk in enumerate(chunks) for position in chunk.positions}


def ranked(chunks: list[Chunk]) -> Iterator[tuple[int, int, str, Source]]:
    """First position of a chunk, rank, how a source is named, and the source."""
    for chunk in chunks:
        for rank, found in enumerate(chunk.sources):
            snippet = " ".join(found.text.split())[:_SNIPPET_CHARS]
            places = f", {found.n_places} places" if found.n_places > 1 else ""
            name = (
                f"{found.title} ({found.source}, {found.licence}{places}; nearer than "
                f"{found.percentile:.1%} of random pairs): {snippet}"
            )
            yield chunk.positions[0], rank, name, found
