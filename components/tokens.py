"""The packed token stream, read by position: files to batches (paper §5.4, method §4.9).

    stream.npy    token ids of train, valid and test, one after the other (several: in shards)
    rows          spans (a chunk with the special tokens that belong to it, or padding) that tile it

A window is `length` consecutive tokens of a split, counted from the split's start. The last one is
filled up with padding, so no token is ever left out.

Shape suffixes used in this file:
    B batch   T position   C chunk of a batch   M place for a concept   N rows, anything flat
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from components import contracts, manifests, spans
from components.manifests import MANIFEST_FILE, Manifest, digest_of
from components.order import Integers
from components.ranged import FolderPlace, Place
from components.shards import (
    Arrays,
    Shard,
    ShardedSpans,
    ShardedStream,
    SpanSource,
    Stretch,
    StretchSpans,
    joined,
    listed,
)
from components.spans import Spans
from model.diffusion import Batch
from model.tokenizer import SpecialIds, Tokenizer

SPLITS = ("train", "valid", "test")

EAGER_BYTES = 1 << 30
"""An artifact in a folder is read through and compared with its manifest when it is opened, if it
is no larger; otherwise each file is when it is first touched."""


@dataclass(frozen=True)
class Origins:
    """Where the tokens of a batch come from, as rows of the span table; −1 beyond a split's end."""

    span_BT: Integers
    span_C: Integers
    """The span of each local chunk of the batch of the same windows."""


@dataclass(frozen=True)
class _Windows:
    """Some windows and the spans they lie in, those of one window after those of another."""

    ids_BT: Integers
    local_BT: Integers
    """Row of the tables below; −1 beyond the split's end."""

    pooled_BT: NDArray[np.bool_]
    """Whether a token votes on its chunk's concepts: special tokens and padding do not."""

    spans: StretchSpans

    @property
    def chunk_C(self) -> Integers:
        """Rows of the tables below that are a chunk of the batch: those with a pooled token.

        A span of which a window sees nothing but special tokens is no chunk of that batch.
        """
        seen = np.zeros(len(self.spans.row_N), dtype=np.bool_)
        seen[self.local_BT[self.pooled_BT]] = True
        return np.flatnonzero(seen)


class TokenStream:
    """A Tokens artifact, in a folder or in S3. Opening it reads three small files."""

    def __init__(self, where: Path | Place, eager_bytes: int = EAGER_BYTES) -> None:
        place = FolderPlace(where) if isinstance(where, Path) else where
        manifest, verified = _checked(place, eager_bytes)
        self.digest = manifest.digest
        """Of the artifact: what a resumed run compares."""

        self._place, self._manifest = place, manifest
        self._arrays = Arrays(place, manifest.files, verified=verified)
        facts = contracts.json_file(self._file("tokens.json").parent, "tokens.json")
        self.tokenizer_path = self._file("tokenizer.json")
        self.tokenizer = Tokenizer(self.tokenizer_path)
        self.vocab_size = int(str(facts["vocab_size"]))
        self.block = int(str(facts["block"]))
        self.library_digest = str(facts.get("library_digest", ""))
        """Of the concept library behind the concept ids; empty: said by nobody."""

        self.bounds = _bounds(facts["splits"])
        self.shards = listed(facts)
        """The parts of the stream; none where all of it is in `stream.npy`."""

        self._chunks = _chunks(facts.get("chunks", {}))
        self._special_V = np.zeros(self.vocab_size, dtype=np.bool_)
        self._special_V[list(self.tokenizer.special_names)] = True

    @property
    def specials(self) -> SpecialIds:
        """Ids of the special tokens in this stream."""
        return self.tokenizer.specials

    @property
    def tokenizer_digest(self) -> str:
        """SHA-256 of `tokenizer.json`."""
        return self._manifest.files["tokenizer.json"].sha256

    @cached_property
    def spans(self) -> Spans:
        """The span table, whole: read when it is first asked for."""
        return spans.read(self._file(contracts.ROWS_FILE))

    def n_windows(self, split: str, length: int) -> int:
        """Windows of `length` tokens in a split, the last one possibly short of text."""
        return -(-self.n_tokens(split) // length)

    def n_tokens(self, split: str) -> int:
        """Tokens of a split, padding included."""
        start, end = self.bounds[split]
        return end - start

    def chunk_tokens(self, split: str) -> float:
        """Tokens of an average chunk of a split, its special tokens included."""
        if self.shards:
            said = self._chunks[split]
            return said["tokens"] / said["n"]
        rows = self.span_rows(split)
        return float((self.spans.token_end[rows] - self.spans.token_start[rows]).mean())

    def n_bytes(self, split: str) -> dict[str, int]:
        """Bytes of UTF-8 text in a split, by domain."""
        totals: dict[str, int] = {}
        for name, domain, n in zip(
            self.spans.split, self.spans.domain, self.spans.n_bytes.tolist(), strict=True
        ):
            if name == split and domain:
                totals[domain] = totals.get(domain, 0) + n
        return totals

    def span_rows(self, split: str) -> Integers:
        """Rows of the span table that hold a chunk of this split."""
        inside = np.array([name == split for name in self.spans.split])
        return np.flatnonzero(inside & (self.spans.chunk_id >= 0))

    def span_tokens(self, row: int) -> Integers:
        """Token ids of one span, with its special tokens."""
        return self._ids.of([(int(self.spans.token_start[row]), int(self.spans.token_end[row]))])[0]

    def windows_by_domain(self, length: int) -> dict[str, Integers]:
        """Training windows by the domain that most of their tokens belong to (reads the table)."""
        return self.spans.windows_by_domain(*self.bounds["train"], length)

    def origins(self, split: str, length: int, indices: Integers) -> Origins:
        """The spans that the tokens and the local chunks of `batch` come from."""
        windows = self._windows(split, length, indices)
        row_N = np.append(windows.spans.row_N, -1)
        return Origins(row_N[windows.local_BT], windows.spans.row_N[windows.chunk_C])

    def batch(
        self, split: str, length: int, indices: Integers, sample_ids: Integers | None = None
    ) -> Batch:
        """Windows as a batch. Sample ids (the seeds of their noise) are the windows themselves
        unless given."""
        windows = self._windows(split, length, indices)
        chunk_C = windows.chunk_C
        chunk_of_N = np.full(len(windows.spans.row_N), -1, dtype=np.int64)
        chunk_of_N[chunk_C] = np.arange(len(chunk_C))
        chunk_BT = np.where(windows.pooled_BT, chunk_of_N[windows.local_BT], -1)
        names = np.array(indices if sample_ids is None else sample_ids, dtype=np.int64)
        return Batch(
            ids_BT=torch.from_numpy(windows.ids_BT),
            chunk_BT=torch.from_numpy(chunk_BT),
            concepts_CM=torch.from_numpy(windows.spans.concepts_NM[chunk_C]),
            labelled_C=torch.from_numpy(windows.spans.labelled_N[chunk_C]),
            sample_ids_B=torch.from_numpy(names),
        )

    def batches(self, split: str, length: int, batch_sequences: int) -> Iterator[Batch]:
        """All windows of a split, in order: what evaluation reads."""
        windows = np.arange(self.n_windows(split, length))
        for start in range(0, len(windows), batch_sequences):
            yield self.batch(split, length, windows[start : start + batch_sequences])

    def stretches(self, split: str, length: int, indices: Integers) -> list[Stretch]:
        """The positions of windows in the stream. Raises ValueError for a window beyond it."""
        start, end = self.bounds[split]
        first_B = start + np.asarray(indices) * length
        if first_B.size and not (start <= first_B.min() and first_B.max() < end):
            raise ValueError(
                f"windows {np.asarray(indices).tolist()} of {length} tokens, but {split} has "
                f"{self.n_windows(split, length)}"
            )
        last_B = np.minimum(first_B + length, end)
        return list(zip(first_B.tolist(), last_B.tolist(), strict=True))

    @cached_property
    def _ids(self) -> ShardedStream:
        if self.shards:
            return ShardedStream(self._arrays, self.shards)
        n_tokens = self._arrays.facts("stream.npy").length
        return ShardedStream(
            self._arrays,
            [Shard(stream="stream.npy", spans="", blocks="", n_tokens=n_tokens, n_spans=0)],
        )

    @cached_property
    def _span_source(self) -> SpanSource:
        if self.shards:
            return ShardedSpans(self._arrays, self.shards, self._ids, self.block)
        return self.spans

    def _windows(self, split: str, length: int, indices: Integers) -> _Windows:
        stretches = self.stretches(split, length, indices)
        ids_BT = np.full((len(stretches), length), self.specials.pad_id, dtype=np.int64)
        local_BT = np.full((len(stretches), length), -1, dtype=np.int64)
        found = self._span_source.of(stretches)
        n_before = 0
        for b, (ids_T, own) in enumerate(zip(self._ids.of(stretches), found, strict=True)):
            positions_T = np.arange(*stretches[b])
            ids_BT[b, : len(ids_T)] = ids_T
            local_T = np.searchsorted(own.token_start_N, positions_T, side="right") - 1
            local_BT[b, : len(ids_T)] = n_before + local_T
            n_before += len(own.row_N)
        every = joined(found)
        is_chunk_N = np.append(every.chunk_id_N >= 0, np.False_)
        pooled_BT = is_chunk_N[local_BT] & ~self._special_V[ids_BT]
        return _Windows(ids_BT, local_BT, pooled_BT, every)

    def _file(self, name: str) -> Path:
        """A small file on this machine; compared with the manifest unless that was done before."""
        path = self._place.local(name)
        self._arrays.compare(name, lambda: path.stat().st_size, lambda: digest_of(path))
        return path


def _checked(place: Place, eager_bytes: int) -> tuple[Manifest, bool]:
    """The manifest, and whether every file was compared with it just now."""
    manifest = manifests.manifest_of(place.local(MANIFEST_FILE).parent)
    n_bytes = sum(file.bytes for file in manifest.files.values())
    if isinstance(place, FolderPlace) and n_bytes <= eager_bytes:
        return contracts.verify(place.folder, contracts.TOKENS), True
    contracts.check_kind(manifest, contracts.TOKENS, str(place))
    contracts.check_whole(manifest, contracts.TOKENS, str(place))
    return manifest, False


def _bounds(splits: object) -> dict[str, tuple[int, int]]:
    assert isinstance(splits, dict)
    return {name: (int(splits[name][0]), int(splits[name][1])) for name in SPLITS}


def _chunks(said: object) -> dict[str, dict[str, int]]:
    assert isinstance(said, dict)
    return said
