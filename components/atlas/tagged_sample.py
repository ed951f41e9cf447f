"""The tagged sample as the annotators see it, and the pool of chunks that stands for the corpus.

Chunks are taken in the order of a hash of their vectors, so that what is learned does not depend on
the order in which the corpus was read.

Shape suffixes: N chunks   P tagged chunks   K concepts   D vector width   M chunks of the pool
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from components import contracts
from components.annotators import Floats, Integers
from components.library import Library

_ROWS = 8_192
_Words = NDArray[np.uint64]


@dataclass(frozen=True)
class Tagged:
    """Tagged chunks, as rows of the vectors, and the concepts each was tagged with."""

    rows_P: Integers
    labels_PK: csr_array

    held_out_P: NDArray[np.bool_]
    """Tagged for comparing annotators, by the stage that drew the sample."""

    def split(self) -> tuple["Tagged", "Tagged"]:
        """To fit on, and to compare on."""
        if not self.held_out_P.any() or self.held_out_P.all():
            raise ValueError(
                f"of {len(self.rows_P)} tagged chunks with concepts {self.held_out_P.sum()} are "
                f"held out; annotators need some to learn from and some to be compared on: raise "
                f"n_held_out or n_train where chunks are tagged"
            )
        return self.at(np.flatnonzero(~self.held_out_P)), self.at(np.flatnonzero(self.held_out_P))

    def at(self, places: Integers) -> "Tagged":
        """Some of them, in this order."""
        return Tagged(self.rows_P[places], self.labels_PK[places], self.held_out_P[places])


def read(tags: Path, library: Library) -> Tagged:
    """Concepts of the tagged chunks: a tag stands for the concept whose member it is."""
    concept_of = {
        member: concept.concept_id for concept in library.concepts for member in concept.members
    }
    table = contracts.read(tags, contracts.TAGS)
    pairs = [
        (chunk_id, concept_of[tag])
        for chunk_id, tag in zip(
            table["chunk_id"].to_pylist(), table["tag"].to_pylist(), strict=True
        )
        if tag in concept_of
    ]
    if not pairs:
        raise ValueError(
            f"none of the {table.num_rows} tags in {tags} is a member of a concept of library "
            f"{library.digest[:12]}; run `clearstory rerun --from canonicalise` with these tags"
        )
    rows_P, place_L = np.unique(np.array([row for row, _ in pairs], np.int64), return_inverse=True)
    concept_L = np.array([concept for _, concept in pairs], dtype=np.int64)
    held_out = contracts.json_file(tags, "sample.json")["held_out"]
    assert isinstance(held_out, list), f"a list of chunk ids, not {held_out!r}"
    return Tagged(
        rows_P,
        table_of(place_L, concept_L, len(rows_P), len(library.concepts)),
        np.isin(rows_P, np.array(held_out, dtype=np.int64)),
    )


def table_of(row_L: Integers, concept_L: Integers, n_rows: int, n_concepts: int) -> csr_array:
    """Labels as a sparse table of ones; a label said twice counts once."""
    unique_L = np.unique(row_L.astype(np.int64) * n_concepts + concept_L)
    row_L, concept_L = np.divmod(unique_L, n_concepts)
    ones_L = np.ones(len(unique_L), dtype=np.float32)
    return csr_array((ones_L, (row_L, concept_L)), shape=(n_rows, n_concepts), dtype=np.float32)


def ordered(found: Tagged, vectors_ND: NDArray[np.float16]) -> Tagged:
    """By the hash of vector and concepts: the same for a corpus read in another order."""
    word_P = hashes(vectors_ND, found.rows_P)
    # A chunk of one vector with another has its place by what it was tagged with.
    labels_PK = found.labels_PK.copy()
    labels_PK.data = _mixed(labels_PK.indices.astype(np.uint64) + np.uint64(1)) >> np.uint64(12)
    second_P = np.asarray(labels_PK.sum(axis=1)).ravel()
    return found.at(np.lexsort((second_P, word_P)))


def pool(vectors_ND: NDArray[np.float16], n: int) -> Integers:
    """Rows of n chunks, all of them where there are fewer, by the hash of their vectors."""
    word_N = hashes(vectors_ND, np.arange(len(vectors_ND)))
    return np.argsort(word_N, kind="stable")[:n].astype(np.int64)


def hashes(vectors_ND: NDArray[np.float16], rows_M: Integers) -> _Words:
    """64 bits of each of these vectors, read a few thousand rows at a time."""
    width = vectors_ND.shape[1]
    odd_D = _mixed(np.arange(1, width + 1, dtype=np.uint64)) | np.uint64(1)
    found = np.empty(len(rows_M), dtype=np.uint64)
    for first in range(0, len(rows_M), _ROWS):
        rows = rows_M[first : first + _ROWS]
        bits_MD = np.ascontiguousarray(vectors_ND[rows], dtype=np.float16).view(np.uint16)
        found[first : first + len(rows)] = _mixed((bits_MD.astype(np.uint64) * odd_D).sum(axis=1))
    return found


def _mixed(words: _Words) -> _Words:
    """SplitMix64's finaliser: every bit of a word depends on all of its bits."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def of_rows(vectors_ND: NDArray[np.float16], rows: Integers) -> Floats:
    """Vectors of some rows, in their order."""
    return np.asarray(vectors_ND[rows], dtype=np.float32)
