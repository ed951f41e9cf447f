"""Tags@1: what the tagger said about a sample of chunks, and how often it said nothing usable."""

from collections.abc import Collection
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa

from components.gates.config import TagBounds
from components.gates.rules import (
    Between,
    Fact,
    OneOf,
    Present,
    Sheet,
    UniqueTogether,
    facts,
    share,
)

KINDS = ("content", "tone", "document", "entity")


@dataclass(frozen=True)
class Sampled:
    """Chunk ids of `sample.json`."""

    tagged: Collection[int]
    parse_failed: Collection[int]

    by_phrases: Collection[int]
    """Of the tagged ones, those that no model was asked about."""

    @property
    def n_asked(self) -> int:
        return len({*self.tagged, *self.parse_failed} - {*self.by_phrases})


def sheets(table: pa.Table, sampled: Sampled, bounds: TagBounds) -> list[Sheet]:
    """Rows by tag, one row a tagged chunk, then the whole."""
    tagged = sampled.tagged
    frame = table.to_pandas()
    tag = frame["tag"].astype("str")
    frame["n_chars"] = tag.str.len()
    frame["normalised"] = tag.str.strip().str.lower().where(tag.notna())
    frame["outside_sample"] = (~frame["chunk_id"].isin(list(tagged))).astype(int)
    rows = Sheet(
        "tags",
        frame,
        ("chunk_id", "tag"),
        (
            *(Present(f"{column}_present", column) for column in ("chunk_id", "tag", "kind")),
            UniqueTogether("tag_once_a_chunk", ("chunk_id", "tag")),
            OneOf("kind_known", "kind", KINDS),
            Between("tag_length", "n_chars", 1, bounds.max_tag_chars),
            Between("tag_from_sample", "outside_sample", 0, 0),
        ),
    )
    return [rows, _chunks(frame, tagged, bounds), _whole(frame, sampled, bounds)]


def _chunks(frame: pd.DataFrame, tagged: Collection[int], bounds: TagBounds) -> Sheet:
    counts = frame.groupby("chunk_id")["tag"].nunique().reindex(sorted(tagged), fill_value=0)
    return Sheet(
        "tagged chunks",
        pd.DataFrame({"chunk_id": counts.index, "n_tags": counts.to_numpy()}),
        ("chunk_id",),
        (
            Between(
                "tags_per_chunk", "n_tags", bounds.min_tags_per_chunk, bounds.max_tags_per_chunk
            ),
        ),
    )


def _whole(frame: pd.DataFrame, sampled: Sampled, bounds: TagBounds) -> Sheet:
    tagged = sampled.tagged
    chunks_of_tag = frame.groupby("tag")["chunk_id"].nunique()
    commonest = float(chunks_of_tag.max()) if len(chunks_of_tag) else float("nan")
    return facts(
        [
            Fact("n_tagged_chunks", len(tagged), low=bounds.min_tagged_chunks),
            Fact("parse_failed_share", share(len(sampled.parse_failed), sampled.n_asked),
                 high=bounds.max_parse_failed_share),
            Fact("mean_tags_per_chunk", share(len(frame), len(tagged)),
                 low=bounds.min_mean_tags_per_chunk),
            Fact("n_distinct_tags", len(chunks_of_tag), low=bounds.min_distinct_tags),
            Fact("commonest_tag_share", share(commonest, len(tagged)),
                 high=bounds.max_commonest_tag_share),
        ]
    )  # fmt: skip
