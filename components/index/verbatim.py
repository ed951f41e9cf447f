"""Does a training chunk find itself: by its text, by half of it, by the tokens it is made of?

Shape suffixes: N chunk   K row found
"""

from collections.abc import Sequence

import numpy as np

from components.chunks import ChunkTexts
from components.embedding import Embedder
from components.index import measuring
from components.index.config import BuildConfig
from components.index.overlap import by_overlap
from components.index.rows import IndexedChunks
from components.index.states import ChunkStates
from components.index_facts import Recall, VerbatimFacts
from components.nearest import VectorIndex
from components.order import Integers
from components.tokens import TokenStream


def measure(
    table: VectorIndex, encoder: Embedder, indexed: IndexedChunks, held_back: ChunkStates,
    stream: TokenStream, config: BuildConfig,
) -> VerbatimFacts:  # fmt: skip
    """By text for rows evenly spread over the index; by tokens for the chunks held back."""
    rows_N = spread(table.n, config.n_verbatim)
    chunk_ids = indexed.first_ids[rows_N].tolist()
    texts = ChunkTexts(indexed.documents, indexed.chunks).at(chunk_ids)
    doc_id_N = np.array([str(indexed.places[row][0]["doc_id"]) for row in rows_N.tolist()])

    def by(asked: Sequence[str]) -> Recall:
        deepest = min(table.n, measuring.DEEPEST)
        found_NK = table.search(encoder.embed(asked), deepest).rows_QK
        return measuring.recall_of_own(found_NK, rows_N, doc_id_N, table.n, config)

    tokens, visible_tokens = _by_tokens(indexed, held_back, stream, config)
    return VerbatimFacts(
        by_text=by(texts),
        by_half=by([_half(text) for text in texts]),
        by_tokens=tokens,
        by_visible_tokens=visible_tokens,
    )


def spread(n: int, wanted: int) -> Integers:
    """Numbers evenly spread over 0 … n − 1."""
    return np.unique(np.linspace(0, n - 1, min(n, wanted)).round().astype(np.int64))


def _half(text: str) -> str:
    """The words in the middle."""
    words = text.split()
    return " ".join(words[len(words) // 4 : len(words) - len(words) // 4])


def _by_tokens(
    indexed: IndexedChunks, held_back: ChunkStates, stream: TokenStream, config: BuildConfig
) -> tuple[Recall | None, Recall | None]:
    n_rows = len(indexed.places)
    if n_rows > config.overlap_up_to:
        return None, None
    span_of = {chunk: row for row, chunk in enumerate(stream.spans.chunk_id.tolist())}
    specials = list(stream.tokenizer.special_names)
    spans = (stream.span_tokens(span_of[chunk]) for chunk in indexed.first_ids.tolist())
    row_ids = [ids[~np.isin(ids, specials)] for ids in spans]
    own_N = np.array([indexed.row_of[chunk] for chunk in held_back.chunk_id_N.tolist()])
    deepest = min(n_rows, measuring.DEEPEST)
    found = [
        by_overlap(row_ids, query_ids, stream.tokenizer.vocab_size, deepest)
        for query_ids in (held_back.ids, held_back.visible_ids)
    ]
    whole, visible = (
        measuring.recall_of_own(found_NK, own_N, held_back.doc_id_N, n_rows, config)
        for found_NK in found
    )
    return whole, visible
