"""What a rater is shown of a concept: its lifted words, those a person can read (paper app. D).

Lifted words are tokens, and many tokens are pieces: *rul*, *jango*. A token is a word to a reader
if most of its occurrences stand between things that are no letters.

Shape suffixes: V vocabulary   S sequence in a file
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from components import contracts
from components.study.config import DrawConfig
from components.tokens import TokenStream

Flags = NDArray[np.bool_]


def evidence(lifted: Path, stream: TokenStream, config: DrawConfig) -> dict[int, list[str]]:
    """The words of each concept, best first, as many as can be shown; few for some concepts."""
    readable = words_of_tokens(stream, config)
    found: dict[int, dict[str, str]] = {}
    for row in contracts.read(lifted, contracts.LIFTED_WORDS).to_pylist():
        word = readable.get(row["token_id"], "")
        if word and row["support"] >= config.min_support:
            # Spellings that differ in case alone are one word to a reader: the stronger stays.
            found.setdefault(row["concept_id"], {}).setdefault(word.casefold(), word)
    return {
        concept_id: list(words.values())[: config.n_words] for concept_id, words in found.items()
    }


def words_of_tokens(stream: TokenStream, config: DrawConfig) -> dict[int, str]:
    """Token ids that are whole words, with the word: letters, and at most one sign before them."""
    pieces = stream.tokenizer.pieces(range(stream.vocab_size))
    special = set(stream.tokenizer.special_names)
    shares_V = whole_shares(stream, pieces, config.sample_tokens)
    found = {}
    for token_id, piece in enumerate(pieces):
        word = piece if piece[:1].isalpha() else piece[1:]
        is_word = word.isalpha() and len(word) >= config.min_letters and token_id not in special
        if is_word and shares_V[token_id] >= config.whole_share:
            found[token_id] = word
    return found


def whole_shares(stream: TokenStream, pieces: list[str], sample_tokens: int) -> NDArray[np.float64]:
    """Share of each token's occurrences with no letter touching it; 0 for those never seen."""
    begins_V = np.array([piece[:1].isalpha() for piece in pieces])
    ends_V = np.array([piece[-1:].isalpha() for piece in pieces])
    begins_V[list(stream.tokenizer.special_names)] = False
    ends_V[list(stream.tokenizer.special_names)] = False
    seen_V, whole_V = np.zeros(len(pieces)), np.zeros(len(pieces))
    n_read = 0
    for row in stream.span_rows("train").tolist():
        ids_S = np.asarray(stream.span_tokens(row), dtype=np.int64)
        is_whole_S = _untouched(ids_S, begins_V, ends_V)
        seen_V += np.bincount(ids_S, minlength=len(pieces))
        whole_V += np.bincount(ids_S[is_whole_S], minlength=len(pieces))
        n_read += len(ids_S)
        if n_read >= sample_tokens:
            break
    return np.asarray(whole_V / np.maximum(seen_V, 1))


def _untouched(ids_S: NDArray[np.int64], begins_V: Flags, ends_V: Flags) -> Flags:
    begins_S, ends_S = begins_V[ids_S], ends_V[ids_S]
    after_letter_S = np.concatenate([[False], ends_S[:-1]]) & begins_S
    before_letter_S = np.concatenate([begins_S[1:], [False]]) & ends_S
    return np.asarray(~after_letter_S & ~before_letter_S)
