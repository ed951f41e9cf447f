"""Tokens@1: spans tile the stream, so every position has exactly one origin."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from components import contracts, spans
from components.contracts import ContractError
from components.gates.config import TokenBounds
from components.gates.rules import Between, Fact, OneOf, Present, Sheet, Unique, facts, share
from components.gates.suites.documents import SPLITS
from components.shards import Shard, listed

_POSITIONS_AT_ONCE = 4_000_000
_COLUMNS = ("span_id", "chunk_id", "split", "token_start", "token_end", "n_bytes", "labelled")


@dataclass(frozen=True)
class Stream:
    """What the files beside the table say: length and largest id of the stream, its splits."""

    n_tokens: int
    largest_id: int
    vocab_size: int
    block: int
    splits: Mapping[str, tuple[int, int]]
    unlike_records: int
    """Rows of the table that the record beside a shard contradicts."""


def stream_of(folder: Path) -> Stream:
    """Read from the shards, mapped and passed over once, and `tokens.json`."""
    said = contracts.json_file(folder, "tokens.json")
    splits, vocab_size, block = said.get("splits"), said.get("vocab_size"), said.get("block")
    if not (isinstance(splits, dict) and isinstance(vocab_size, int) and isinstance(block, int)):
        raise ContractError(
            f"{folder / 'tokens.json'} says vocab_size {vocab_size!r}, block {block!r}, splits "
            f"{splits!r}; a stream needs all three. Run `clearstory rerun --from pack`."
        )
    shards = listed(said)
    files = [shard.stream for shard in shards] or ["stream.npy"]
    streams = [np.load(folder / file, mmap_mode="r") for file in files]
    return Stream(
        n_tokens=sum(map(len, streams)),
        largest_id=max(map(_largest, streams), default=-1),
        vocab_size=vocab_size,
        block=block,
        splits={name: (int(start), int(end)) for name, (start, end) in splits.items()},
        unlike_records=_unlike(folder, shards),
    )


def _largest(ids: NDArray[np.integer[Any]]) -> int:
    starts = range(0, len(ids), _POSITIONS_AT_ONCE)
    return max((int(ids[at : at + _POSITIONS_AT_ONCE].max()) for at in starts), default=-1)


def _unlike(folder: Path, shards: Sequence[Shard]) -> int:
    """Rows in which span records and table differ, or that only one of them has."""
    if not shards:
        return 0
    table = spans.read(folder / contracts.ROWS_FILE)
    records = [np.load(folder / shard.spans) for shard in shards]
    before = np.repeat(
        np.cumsum([0, *(shard.n_tokens for shard in shards)])[:-1],
        [len(found) for found in records],
    )
    record_N = np.concatenate(records)
    if len(record_N) != len(table):
        return max(len(record_N), len(table))
    same_N = (
        (record_N["token_start"] + before == table.token_start)
        & (record_N["chunk_id"] == table.chunk_id)
        & ((record_N["labelled"] != 0) == table.labelled)
        & (record_N["concept_ids"] == table.concepts_NM).all(axis=1)
    )
    return int((~same_N).sum())


def sheets(table: pa.Table, stream: Stream, bounds: TokenBounds) -> list[Sheet]:
    """Rows by span, one row a split, then the whole."""
    frame = table.drop(["concept_ids"]).to_pandas()
    concept_ids = table.column("concept_ids").to_pylist()
    n_concepts = pd.Series([None if ids is None else len(ids) for ids in concept_ids])
    frame["n_concepts"] = pd.to_numeric(n_concepts)
    return [_spans(frame, bounds), _splits(frame, stream, bounds), _whole(frame, stream, bounds)]


def _spans(frame: pd.DataFrame, bounds: TokenBounds) -> Sheet:
    is_chunk = frame["chunk_id"] >= 0
    previous_end = frame["token_end"].shift().fillna(0)
    frame["row_offset"] = frame["span_id"] - np.arange(len(frame))
    frame["gap_tokens"] = frame["token_start"] - previous_end
    frame["n_tokens"] = frame["token_end"] - frame["token_start"]
    frame["chunk_if_any"] = frame["chunk_id"].where(is_chunk)
    frame["concepts_if_unlabelled"] = frame["n_concepts"].where(frame["labelled"] == 0, 0)
    chunk_rows = frame[is_chunk]
    frame["n_splits_of_document"] = chunk_rows.groupby("doc_id")["split"].transform("nunique")
    return Sheet(
        "spans",
        frame,
        ("span_id", "doc_id"),
        (
            *(Present(f"{column}_present", column) for column in _COLUMNS),
            Present("concept_ids_present", "n_concepts"),
            Between("span_id_is_row_number", "row_offset", 0, 0),
            Between("no_gap_between_spans", "gap_tokens", high=0),
            Between("no_overlap_between_spans", "gap_tokens", low=0),
            Between("span_not_empty", "n_tokens", low=1),
            Unique("chunk_packed_once", "chunk_if_any"),
            OneOf("split_known", "split", SPLITS),
            Between("document_in_one_split", "n_splits_of_document", high=1),
            Between("concepts_per_span", "n_concepts", high=bounds.max_concepts_per_span),
            Between("unlabelled_has_no_concepts", "concepts_if_unlabelled", high=0),
        ),
    )


def _splits(frame: pd.DataFrame, stream: Stream, bounds: TokenBounds) -> Sheet:
    rows, previous_end = [], 0
    for split in SPLITS:
        start, end = stream.splits.get(split, (previous_end, previous_end))
        spans = frame[frame["split"] == split]
        chunk_spans = spans[spans["chunk_id"] >= 0]
        n_chunk_tokens = chunk_spans["n_tokens"].sum()
        n_padding = spans["n_tokens"].sum() - n_chunk_tokens
        rows.append(
            {
                "split": split,
                "n_tokens": end - start,
                "start_offset": start - previous_end,
                "beyond_block": (end - start) % stream.block,
                "span_tokens_missing": end - start - spans["n_tokens"].sum(),
                "labelled_share": share(
                    chunk_spans.loc[chunk_spans["labelled"] == 1, "n_tokens"].sum(), n_chunk_tokens
                ),
                "padding_share": share(n_padding, end - start),
                "padding_tokens": n_padding,
            }
        )
        previous_end = end
    return Sheet(
        "splits",
        pd.DataFrame(rows),
        ("split",),
        (
            Between("split_not_empty", "n_tokens", low=1),
            Between("splits_follow_each_other", "start_offset", 0, 0),
            Between("split_is_whole_blocks", "beyond_block", 0, 0),
            Between("split_is_its_spans", "span_tokens_missing", 0, 0),
            Between("labelled_share", "labelled_share", low=bounds.min_labelled_share),
            Between("padding_below_a_block", "padding_tokens", high=stream.block - 1),
        ),
    )


def _whole(frame: pd.DataFrame, stream: Stream, bounds: TokenBounds) -> Sheet:
    covered = frame["token_end"].iloc[-1] if len(frame) else 0
    chunk_spans = frame[frame["chunk_id"] >= 0]
    start, end = stream.splits.get("train", (0, 0))
    return facts(
        [
            Fact("stream_tokens_without_span", stream.n_tokens - covered, 0, 0),
            Fact("span_records_unlike_table", stream.unlike_records, 0, 0),
            Fact("largest_token_id", stream.largest_id, 0, stream.vocab_size - 1),
            Fact("n_train_tokens", end - start, low=bounds.min_train_tokens),
            Fact("n_token_domains", chunk_spans["domain"].nunique(), low=bounds.min_domains),
        ]
    )
