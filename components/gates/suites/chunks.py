"""Chunks@1: each document cut into consecutive pieces, nothing left out, nothing twice."""

import numpy as np
import pyarrow as pa

from components.gates.config import ChunkBounds
from components.gates.rules import Between, Fact, OneOf, Present, Sheet, Unique, facts, share

STATUSES = ("ok", "long", "segmentation_error")
_COLUMNS = ("chunk_id", "doc_id", "start", "end", "n_wordpieces", "status")


def sheets(table: pa.Table, bounds: ChunkBounds) -> list[Sheet]:
    """Rows by chunk, in the order of the artifact, which is the order of the documents."""
    frame = table.to_pandas()
    opens_document = frame["doc_id"] != frame["doc_id"].shift()
    expected_start = frame["end"].shift().where(~opens_document, 0)
    frame["row_offset"] = frame["chunk_id"] - np.arange(len(frame))
    frame["gap_chars"] = frame["start"] - expected_start
    frame["n_chars"] = frame["end"] - frame["start"]
    frame["n_runs_of_document"] = opens_document.groupby(frame["doc_id"]).transform("sum")
    is_ok = frame["status"] == "ok"
    frame["wordpieces_if_ok"] = frame["n_wordpieces"].where(is_ok)
    rows = Sheet(
        "chunks",
        frame,
        ("chunk_id", "doc_id"),
        (
            *(Present(f"{column}_present", column) for column in _COLUMNS),
            Unique("chunk_id_unique", "chunk_id"),
            Between("chunk_id_is_row_number", "row_offset", 0, 0),
            Between("no_gap_between_chunks", "gap_chars", high=0),
            Between("no_overlap_between_chunks", "gap_chars", low=0),
            Between("chunk_not_empty", "n_chars", low=1),
            Between("document_in_one_piece", "n_runs_of_document", high=1),
            OneOf("status_known", "status", STATUSES),
            Between("wordpieces_counted", "n_wordpieces", low=0),
            Between("ok_chunk_not_too_long", "wordpieces_if_ok", high=bounds.max_wordpieces),
        ),
    )
    counts = frame["status"].value_counts()
    whole = facts(
        [
            Fact("n_chunks", len(frame), low=bounds.min_chunks),
            Fact("long_share", share(counts.get("long", 0), len(frame)),
                 high=bounds.max_long_share),
            Fact("segmentation_error_share",
                 share(counts.get("segmentation_error", 0), len(frame)),
                 high=bounds.max_segmentation_error_share),
        ]
    )  # fmt: skip
    return [rows, whole]
