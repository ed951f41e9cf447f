"""Lifted words: the words that set a concept's chunks apart (paper appendix D, §10.2.4).

    rate(w | c)   share of the training chunks labelled c that contain w, shrunk to the share of all
    log_odds      logit rate(w | c) − logit rate(w | not c), the lower end of its interval

The plain ratio P(w | c) / P(w) is largest for words seen once or twice. The prior and the interval
take that away: what is left large is both frequent in the concept and rare outside of it. Chunks
are counted, not occurrences, so one chunk that repeats a word does not lift it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from components import contracts
from components.packing.config import LiftConfig
from components.tokens import TokenStream

Floats = NDArray[np.float64]

_CONCEPTS_AT_ONCE = 256


def lift(tokens: Path, concepts: Path, lifted: Path, config: LiftConfig) -> int:
    """Find each concept's lifted words, best first. Returns the number of words in all."""
    stream = TokenStream(tokens)
    known = contracts.read(concepts, contracts.CONCEPTS)
    return contracts.write(_rows(stream, known.num_rows, config), lifted, contracts.LIFTED_WORDS)


@dataclass(frozen=True)
class Counts:
    """Chunks: how many contain a word, carry a concept, and both. K concepts, V words."""

    both_KV: Floats
    with_concept_K: Floats
    with_word_V: Floats
    n_chunks: int


def log_odds(counts: Counts, prior_chunks: float, deviations: float) -> Floats:
    """The lower end of the smoothed log-odds ratio of every concept and word."""
    rate_V = (counts.with_word_V + 0.5) / (counts.n_chunks + 1.0)
    hits_V, misses_V = prior_chunks * rate_V, prior_chunks * (1.0 - rate_V)
    inside_K1 = counts.with_concept_K[:, None]
    in_hits_KV = counts.both_KV + hits_V
    in_misses_KV = inside_K1 - counts.both_KV + misses_V
    out_hits_KV = counts.with_word_V - counts.both_KV + hits_V
    out_misses_KV = counts.n_chunks - inside_K1 - (counts.with_word_V - counts.both_KV) + misses_V
    difference_KV = np.log(in_hits_KV / in_misses_KV) - np.log(out_hits_KV / out_misses_KV)
    variance_KV = 1 / in_hits_KV + 1 / in_misses_KV + 1 / out_hits_KV + 1 / out_misses_KV
    return difference_KV - deviations * np.sqrt(variance_KV)


def _rows(stream: TokenStream, n_concepts: int, config: LiftConfig) -> Iterator[dict[str, object]]:
    rows = stream.span_rows("train")
    rows = rows[stream.spans.labelled[rows]]
    words_NV = _words(stream, rows, config.min_letters)
    labels_NK = _labels(stream, rows, n_concepts)
    with_word_V = np.asarray(words_NV.sum(axis=0)).ravel()
    for first in range(0, n_concepts, _CONCEPTS_AT_ONCE):
        some_NK = labels_NK[:, first : first + _CONCEPTS_AT_ONCE]
        counts = Counts(
            both_KV=(some_NK.T @ words_NV).toarray(),
            with_concept_K=np.asarray(some_NK.sum(axis=0)).ravel(),
            with_word_V=with_word_V,
            n_chunks=len(rows),
        )
        odds_KV = log_odds(counts, config.prior_chunks, config.deviations)
        odds_KV[counts.both_KV < config.min_support] = -np.inf
        for k, odds_V in enumerate(odds_KV):
            best_first = np.argsort(-odds_V, kind="stable")[: config.max_words]
            for token_id in best_first[odds_V[best_first] > 0].tolist():
                yield {
                    "concept_id": first + k,
                    "token_id": token_id,
                    "log_odds": float(odds_V[token_id]),
                    "support": int(counts.both_KV[k, token_id]),
                }


def _words(stream: TokenStream, rows: NDArray[np.int64], min_letters: int) -> sparse.csr_matrix:
    """Whether a chunk contains a token, for the tokens that are words to a reader."""
    pieces = stream.tokenizer.pieces(range(stream.vocab_size))
    readable = np.array([sum(map(str.isalpha, piece)) >= min_letters for piece in pieces])
    readable[list(stream.tokenizer.special_names)] = False
    found = [np.unique(stream.span_tokens(row)) for row in rows.tolist()]
    found = [token_ids[readable[token_ids]] for token_ids in found]
    return _indicator(found, stream.vocab_size)


def _labels(stream: TokenStream, rows: NDArray[np.int64], n_concepts: int) -> sparse.csr_matrix:
    """Whether a chunk carries a concept."""
    concepts_NM = stream.spans.concepts_NM[rows]
    return _indicator([concepts[concepts >= 0] for concepts in concepts_NM], n_concepts)


def _indicator(columns: list[NDArray[np.int64]], n_columns: int) -> sparse.csr_matrix:
    starts = np.cumsum([0, *map(len, columns)])
    flat = np.concatenate([np.empty(0, dtype=np.int64), *columns])
    return sparse.csr_matrix((np.ones(len(flat)), flat, starts), shape=(len(columns), n_columns))
