"""Tags@1 as arrays: unique tags, their kinds, and which chunks carry them (paper §4, stage two).

Chunks are kept as one sorted list with an offset for each tag (compressed sparse rows), so that a
million tags on ten million places cost what the numbers weigh and no object each.

Shape suffixes: N tags   M places where a tag stands, by tag   D width of a vector
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from components.embedding import Floats

Integers = NDArray[np.int64]

KINDS = ("content", "document", "entity", "tone")
"""In alphabetical order: of kinds equally frequent the first one counts."""


@dataclass(frozen=True)
class Tagged:
    """Unique tags in alphabetical order with their vectors, kinds, and chunks that carry them."""

    texts: Sequence[str]
    kind_N: NDArray[np.int8]
    """Index into KINDS: the kind most places give the tag."""

    offset_N: Integers
    """(N + 1) where the places of each tag begin."""

    chunk_M: Integers
    """Which of the tagged chunks, 0 … n_chunks − 1, ascending within a tag."""

    n_chunks: int
    """Tagged chunks in all."""

    vectors_ND: Floats
    """Unit vectors."""

    @property
    def n(self) -> int:
        return len(self.texts)

    @cached_property
    def weight_N(self) -> Floats:
        """Chunks that carry each tag."""
        return np.diff(self.offset_N).astype(np.float32)


@dataclass(frozen=True)
class Places:
    """Where each unique tag stands: all of `Tagged` that needs no encoder."""

    texts: list[str]
    kind_N: NDArray[np.int8]
    offset_N: Integers
    chunk_M: Integers
    n_chunks: int

    def tagged(self, vectors_ND: Floats) -> Tagged:
        """With a vector for each tag."""
        assert len(vectors_ND) == len(self.texts), f"{len(vectors_ND)} of {len(self.texts)} vectors"
        return Tagged(
            self.texts, self.kind_N, self.offset_N, self.chunk_M, self.n_chunks, vectors_ND
        )


def places(tags: pa.Table) -> Places:
    """Rows of Tags@1 by unique tag. Raises ValueError where there is none."""
    if tags.num_rows == 0:
        raise ValueError(
            "there is no tag to make a library of: the tag stage wrote none. Is the corpus empty? "
            "Raise n_train in its config, or give `clearstory run` more documents."
        )
    named = pc.dictionary_encode(tags["tag"].combine_chunks())
    texts = named.dictionary.to_pylist()
    order = sorted(range(len(texts)), key=texts.__getitem__)
    rank_N = np.empty(len(texts), dtype=np.int64)
    rank_N[order] = np.arange(len(texts))
    tag_R = rank_N[np.asarray(named.indices, dtype=np.int64)]
    chunk_ids, chunk_R = np.unique(tags["chunk_id"].to_numpy(), return_inverse=True)
    place_M = np.unique(tag_R * len(chunk_ids) + chunk_R)
    offset_N = np.searchsorted(place_M, np.arange(len(texts) + 1) * len(chunk_ids))
    kind_R = pc.index_in(tags["kind"], value_set=pa.array(KINDS)).to_numpy().astype(np.int64)
    votes_NK = np.bincount(tag_R * len(KINDS) + kind_R, minlength=len(texts) * len(KINDS))
    return Places(
        texts=[texts[at] for at in order],
        kind_N=votes_NK.reshape(-1, len(KINDS)).argmax(axis=1).astype(np.int8),
        offset_N=offset_N.astype(np.int64),
        chunk_M=place_M % len(chunk_ids),
        n_chunks=len(chunk_ids),
    )
