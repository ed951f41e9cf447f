"""The token stream on disk: one file, or several with a record of every span beside each."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from components.order import Integers
from components.packing.spans import Span, TokenType
from components.shards import RECORD, Shard

_COPY_BYTES = 1 << 20


def write(
    parts: Sequence[Path], spans: Sequence[Span], tokens: Path, dtype: TokenType,
    *, block: int, shard_tokens: int,
) -> list[Shard]:  # fmt: skip
    """Join the raw token files of the splits. Returns the shards; none if one file holds all."""
    lengths_N = np.array([span.n_tokens for span in spans], dtype=np.int64)
    pieces = cuts(lengths_N, shard_tokens)
    shards = []
    raw = _following(parts)
    for number, (first, end) in enumerate(pieces):
        n_tokens = int(lengths_N[first:end].sum())
        folder = f"shards/{number:05d}"
        shard = Shard(
            stream="stream.npy" if number == 0 else f"{folder}/stream.npy",
            spans=f"{folder}/spans.npy",
            blocks=f"{folder}/blocks.npy",
            n_tokens=n_tokens,
            n_spans=end - first,
        )
        if len(pieces) > 1:
            (tokens / folder).mkdir(parents=True)
            np.save(tokens / shard.spans, _records(spans[first:end]))
            np.save(tokens / shard.blocks, _blocks(lengths_N[first:end], block))
            shards.append(shard)
        _write_stream(raw, tokens / shard.stream, n_tokens, dtype)
    for part in parts:
        part.unlink()
    return shards


def cuts(lengths_N: Integers, shard_tokens: int) -> list[tuple[int, int]]:
    """Rows first … end − 1 of each shard: as many whole spans as fit, one at the least."""
    ends_N = np.cumsum(lengths_N)
    found: list[tuple[int, int]] = []
    first, base = 0, 0
    while first < len(ends_N) or not found:
        fits = int(np.searchsorted(ends_N, base + shard_tokens, side="right"))
        end = min(len(ends_N), max(fits, first + 1))
        found.append((first, end))
        first, base = end, int(ends_N[end - 1]) if end else 0
    return found


def _following(parts: Sequence[Path]) -> Iterator[BinaryIO]:
    for part in parts:
        with part.open("rb") as handle:
            while handle.peek(1):
                yield handle


def _write_stream(raw: Iterator[BinaryIO], path: Path, n_tokens: int, dtype: TokenType) -> None:
    left = n_tokens * dtype.itemsize
    with path.open("wb") as stream:
        header = {"descr": dtype.str, "fortran_order": False, "shape": (n_tokens,)}
        np.lib.format.write_array_header_1_0(stream, header)
        while left:
            content = next(raw).read(min(left, _COPY_BYTES))
            stream.write(content)
            left -= len(content)


def _records(spans: Sequence[Span]) -> np.ndarray:
    lengths_N = np.array([span.n_tokens for span in spans], dtype=np.int64)
    record_N = np.zeros(len(spans), dtype=RECORD)
    record_N["token_start"] = np.cumsum(lengths_N) - lengths_N
    record_N["chunk_id"] = [span.chunk_id for span in spans]
    record_N["labelled"] = [bool(span.concept_ids) for span in spans]
    record_N["concept_ids"] = -1
    for row, span in enumerate(spans):
        record_N["concept_ids"][row, : len(span.concept_ids)] = span.concept_ids
    return record_N


def _blocks(lengths_N: Integers, block: int) -> np.ndarray:
    """The row of the span that each block begins in, and the last row once more."""
    starts_N = np.cumsum(lengths_N) - lengths_N
    begins = np.arange(0, int(lengths_N.sum()), block)
    rows = np.searchsorted(starts_N, begins, side="right") - 1
    return np.append(rows, len(lengths_N) - 1).astype(np.uint32)
