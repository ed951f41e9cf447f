"""Exact and near duplicates: the first of several alike documents stays (MinHash, banded)."""

import re
import zlib

from datasketch import MinHash, MinHashLSH

from components.corpus.record import hash_of

_WORD = re.compile(r"\w+")
_SHINGLE_WORDS = 5
_N_PERMUTATIONS = 64


class Seen:
    """Documents so far. Similarity is the share of word 5-grams that two texts have in common."""

    def __init__(self, threshold: float, seed: int) -> None:
        self._threshold = threshold
        self._bands = MinHashLSH(threshold=threshold, num_perm=_N_PERMUTATIONS)
        self._sketches: dict[str, MinHash] = {}
        self._exact: set[str] = set()
        self._blank = MinHash(num_perm=_N_PERMUTATIONS, seed=seed, hashfunc=zlib.crc32)

    def duplicate(self, doc_id: str, text: str) -> str:
        """The kind of duplicate, or nothing: then the document counts as seen from now on."""
        if doc_id in self._sketches:
            return "repeated_locator"
        words = _WORD.findall(text.casefold())
        exact = hash_of(" ".join(words) if words else text)
        if exact in self._exact:
            return "exact_duplicate"
        sketch = self._sketch(words)
        near = (self._sketches[found] for found in self._bands.query(sketch))
        if any(sketch.jaccard(other) >= self._threshold for other in near):
            return "near_duplicate"
        self._exact.add(exact)
        self._sketches[doc_id] = sketch
        self._bands.insert(doc_id, sketch)
        return ""

    def _sketch(self, words: list[str]) -> MinHash:
        last = max(1, len(words) - _SHINGLE_WORDS + 1)
        shingles = {" ".join(words[i : i + _SHINGLE_WORDS]).encode() for i in range(last)}
        sketch = self._blank.copy()
        sketch.update_batch(sorted(shingles))
        return sketch
