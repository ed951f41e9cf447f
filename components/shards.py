"""A token stream in shards: where any stretch of it lies (method §4.9, stream with metadata).

    stream.npy, shards/00001/stream.npy, …    token ids; the shards together are the stream
    shards/00000/spans.npy, …                 a record of fixed size for each span of the shard
    shards/00000/blocks.npy, …                the span that each block of the shard begins in

A position is turned into (shard, place in it) by the shards' cumulative lengths. A window then
costs three reads of known place and size, in a folder or in S3, and no table is ever loaded. Spans
never cross shards; windows do, so the cut into shards changes no batch.

Shape suffixes used in this file:
    N spans of a stretch   M place for a concept   T position of a stretch
"""

import io
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from components import contracts, manifests
from components.manifests import FileDigest
from components.order import Integers
from components.ranged import Place, Range
from model.config import Config

MAX_CONCEPTS = 16
"""Most concepts a chunk may carry, as in the released training code."""

RECORD = np.dtype(
    [
        ("token_start", "<i8"),
        ("chunk_id", "<i8"),
        ("labelled", "<i8"),
        ("concept_ids", "<i4", (MAX_CONCEPTS,)),
    ]
)
"""A span in `spans.npy`, 88 bytes: its first token counted from the shard's, concepts −1-filled."""

_HEADER_BYTES = 512

Stretch = tuple[int, int]
"""First position in the stream, and first one after."""


class Shard(Config):
    """A part of the stream, as `tokens.json` lists it; sizes and digests are in the manifest."""

    stream: str
    spans: str
    blocks: str
    n_tokens: int
    n_spans: int


def listed(facts: Mapping[str, object]) -> list[Shard]:
    """The shards that `tokens.json` lists; none where all of the stream is in `stream.npy`."""
    shards = facts.get("shards", [])
    assert isinstance(shards, list)
    return [Shard.model_validate(shard) for shard in shards]


@dataclass(frozen=True)
class StretchSpans:
    """The spans that a stretch of the stream lies in, in order."""

    row_N: Integers
    """Rows of the whole span table."""

    token_start_N: Integers
    chunk_id_N: Integers
    labelled_N: NDArray[np.bool_]
    concepts_NM: Integers


class SpanSource(Protocol):
    """Finds the spans of stretches of the stream."""

    def of(self, stretches: Sequence[Stretch]) -> list[StretchSpans]:
        """The spans of each stretch."""
        ...


@dataclass(frozen=True)
class _Part:
    """What a shard holds of a stretch, in tokens counted from the shard's start."""

    shard: int
    start: int
    end: int


@dataclass(frozen=True)
class _Array:
    """A one-dimensional .npy file: what its header says."""

    name: str
    first_byte: int
    dtype: np.dtype[np.generic]
    length: int

    def range(self, start: int, end: int) -> Range:
        """The bytes of some elements."""
        width = self.dtype.itemsize
        return Range(self.name, self.first_byte + start * width, (end - start) * width)


class Arrays:
    """The .npy files of an artifact, each checked when it is first touched."""

    def __init__(self, place: Place, promised: Mapping[str, FileDigest], *, verified: bool) -> None:
        """`verified`: whether the files were compared with what the manifest promises before."""
        self.place = place
        self._promised, self._verified = promised, verified
        self._checked: set[str] = set()
        self._known: dict[str, _Array] = {}

    def read(self, wanted: Sequence[tuple[str, int, int]]) -> list[NDArray[Any]]:
        """Elements start … end − 1 of the named files, all asked for at once."""
        arrays = [self.facts(name) for name, _, _ in wanted]
        ranges = [
            array.range(start, end) for array, (_, start, end) in zip(arrays, wanted, strict=True)
        ]
        return [
            np.frombuffer(content, dtype=array.dtype)
            for array, content in zip(arrays, self.place.read(ranges), strict=True)
        ]

    def facts(self, name: str) -> _Array:
        """Where the elements of a file begin, of which type and how many they are."""
        if name not in self._known:
            self.compare(name, lambda: self.place.n_bytes(name), lambda: self.place.digest(name))
            self._known[name] = self._header(name)
        return self._known[name]

    def compare(
        self, name: str, n_bytes: Callable[[], int], digest: Callable[[], FileDigest]
    ) -> None:
        """Compare a file with what the manifest promises, once; raises ContractError."""
        if self._verified or name in self._checked:
            return
        again = contracts.again(contracts.TOKENS)
        if name not in self._promised:
            raise contracts.ContractError(
                f"{self.place} lists no file {name} in its manifest. {again}"
            )
        expected, path = self._promised[name], f"{self.place}/{name}"
        manifests.check_size(path, n_bytes(), expected, again)
        manifests.check_digest(path, digest(), expected, again)
        self._checked.add(name)

    def _header(self, name: str) -> _Array:
        n_bytes = min(_HEADER_BYTES, self.place.n_bytes(name))
        handle = io.BytesIO(self.place.read([Range(name, 0, n_bytes)])[0])
        np.lib.format.read_magic(handle)
        shape, _, dtype = np.lib.format.read_array_header_1_0(handle)
        return _Array(name, handle.tell(), dtype, int(shape[0]))


class ShardedStream:
    """Token ids of any stretches of the stream."""

    def __init__(self, arrays: Arrays, shards: Sequence[Shard]) -> None:
        self._arrays, self._shards = arrays, shards
        self._ends = list(accumulate(shard.n_tokens for shard in shards))

    @property
    def n_tokens(self) -> int:
        """Tokens of all shards."""
        return self._ends[-1]

    def of(self, stretches: Sequence[Stretch]) -> list[Integers]:
        """The token ids of each stretch."""
        parts = [self.parts(stretch) for stretch in stretches]
        wanted = [
            (self._shards[part.shard].stream, part.start, part.end)
            for stretch in parts
            for part in stretch
        ]
        found = iter(self._arrays.read(wanted))
        return [
            np.concatenate([next(found).astype(np.int64) for _ in stretch]) for stretch in parts
        ]

    def parts(self, stretch: Stretch) -> list[_Part]:
        """The shards that hold a stretch, and what of it."""
        position, end = stretch
        found = []
        shard = bisect_right(self._ends, position)
        while position < end:
            first = self._ends[shard] - self._shards[shard].n_tokens
            until = min(end, self._ends[shard])
            found.append(_Part(shard, position - first, until - first))
            position, shard = until, shard + 1
        return found


class ShardedSpans:
    """Spans by the records that lie beside each shard: nothing is read before it is asked for."""

    def __init__(
        self, arrays: Arrays, shards: Sequence[Shard], stream: ShardedStream, block: int
    ) -> None:
        self._arrays, self._shards, self._stream, self._block = arrays, shards, stream, block
        self._first_row = np.cumsum([0, *(shard.n_spans for shard in shards)], dtype=np.int64)
        self._first_token = np.cumsum([0, *(shard.n_tokens for shard in shards)], dtype=np.int64)

    def of(self, stretches: Sequence[Stretch]) -> list[StretchSpans]:
        """See SpanSource. Two rounds of reads: where the records are, and the records."""
        parts = [self._stream.parts(stretch) for stretch in stretches]
        flat = [part for stretch in parts for part in stretch]
        rows = self._rows(flat)
        records = self._arrays.read(
            [
                (self._shards[part.shard].spans, first, end)
                for part, (first, end) in zip(flat, rows, strict=True)
            ]
        )
        found = iter(
            self._trimmed(part, first, record_N)
            for part, (first, _), record_N in zip(flat, rows, records, strict=True)
        )
        return [joined([next(found) for _ in stretch]) for stretch in parts]

    def _rows(self, parts: Sequence[_Part]) -> list[tuple[int, int]]:
        """Rows of each shard's records among which those of the part are."""
        blocks = self._arrays.read(
            [
                (
                    self._shards[part.shard].blocks,
                    part.start // self._block,
                    (part.end - 1) // self._block + 2,  # the file has one entry more than blocks
                )
                for part in parts
            ]
        )
        # The span that the block after the last begins in may begin before that block.
        return [
            (int(rows[0]), min(int(rows[-1]) + 1, self._shards[part.shard].n_spans))
            for part, rows in zip(parts, blocks, strict=True)
        ]

    def _trimmed(self, part: _Part, first: int, record_N: NDArray[Any]) -> StretchSpans:
        starts_N = record_N["token_start"]
        low = int(np.searchsorted(starts_N, part.start, side="right")) - 1
        high = int(np.searchsorted(starts_N, part.end, side="left"))
        kept_N = record_N[low:high]
        return StretchSpans(
            row_N=self._first_row[part.shard] + first + np.arange(low, high),
            token_start_N=self._first_token[part.shard] + kept_N["token_start"],
            chunk_id_N=kept_N["chunk_id"],
            labelled_N=kept_N["labelled"] != 0,
            concepts_NM=kept_N["concept_ids"].astype(np.int64),
        )


def joined(parts: Sequence[StretchSpans]) -> StretchSpans:
    """Several stretches' spans, one after the other."""
    if len(parts) == 1:
        return parts[0]
    nothing = np.empty(0, dtype=np.int64)
    return StretchSpans(
        row_N=np.concatenate([nothing, *(part.row_N for part in parts)]),
        token_start_N=np.concatenate([nothing, *(part.token_start_N for part in parts)]),
        chunk_id_N=np.concatenate([nothing, *(part.chunk_id_N for part in parts)]),
        labelled_N=np.concatenate([nothing, *(part.labelled_N for part in parts)]) != 0,
        concepts_NM=np.concatenate(
            [nothing.reshape(0, MAX_CONCEPTS), *(part.concepts_NM for part in parts)]
        ),
    )
