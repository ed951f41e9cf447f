"""An encoder without weights: words hashed to signs. For tests, and where nothing may be fetched.

Each word has a fixed vector of signs, the bits of its hash; its character trigrams have theirs, so
that *vertebra* and *vertebral* are alike; pairs of neighbours have theirs. Function words count
little. A text is the sum, scaled to length one: texts that share words point the same way.

Shape suffixes: N texts   D width of a vector
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from components.words import FUNCTION_WORDS

NAME = "hashing"
_WIDTH = 512  # the bits of one BLAKE2b hash
_PIECE = re.compile(r"[^\W_]{1,6}|[^\w\s]|_")
_WORD = re.compile(r"[^\W\d_]+|\d+")


class HashingEmbedder:
    """The encoder named `hashing`."""

    name = NAME
    digest = "clearstory-hashing-1"
    width = _WIDTH
    max_wordpieces = 256

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors (N, D), one a text, in order; a text without words has zeros."""
        vectors_ND = np.stack([_vector(text) for text in texts]) if texts else np.zeros((0, _WIDTH))
        length_N1 = np.linalg.norm(vectors_ND, axis=1, keepdims=True)
        return (vectors_ND / np.maximum(length_N1, 1e-12)).astype(np.float32)


def word_starts(text: str) -> NDArray[np.int64]:
    """Where pieces start: six characters of a word at most, or one sign."""
    return np.array([match.start() for match in _PIECE.finditer(text)], dtype=np.int64)


def _vector(text: str) -> NDArray[np.float64]:
    words = [word.casefold() for word in _WORD.findall(text[: _max_chars(text)])]
    vector_D = np.zeros(_WIDTH)
    for word in words:
        vector_D += _word_vector(word)
    for pair in pairwise(words):
        if FUNCTION_WORDS.isdisjoint(pair):
            vector_D += 0.5 * _signs(" ".join(pair))
    return vector_D


def _max_chars(text: str) -> int:
    starts = word_starts(text)
    limit = HashingEmbedder.max_wordpieces
    return int(starts[limit]) if len(starts) > limit else len(text)


@lru_cache(maxsize=65_536)
def _word_vector(word: str) -> NDArray[np.float64]:
    if word in FUNCTION_WORDS:
        return 0.05 * _signs(word)
    grams = [word[at : at + 3] for at in range(len(word) - 2)]
    shared_D = np.mean([_signs(f"#{gram}") for gram in grams], axis=0) if grams else 0.0
    return _signs(word) + shared_D


def _signs(feature: str) -> NDArray[np.float64]:
    bits = np.unpackbits(np.frombuffer(blake2b(feature.encode()).digest(), dtype=np.uint8))
    return np.asarray(bits * 2.0 - 1.0, dtype=np.float64)
