"""Labels@1: which chunk carries which concept, each pair once, a few per chunk."""

import pandas as pd
import pyarrow as pa

from components.gates.config import LabelBounds
from components.gates.rules import Between, Fact, Present, Sheet, UniqueTogether, facts, share


def sheets(table: pa.Table, bounds: LabelBounds) -> list[Sheet]:
    """Rows by label, one row a labelled chunk, then the whole."""
    frame = table.to_pandas()
    rows = Sheet(
        "labels",
        frame,
        ("chunk_id", "concept_id"),
        (
            *(Present(f"{column}_present", column) for column in frame.columns),
            Between("chunk_id_exists", "chunk_id", low=0),
            Between("concept_id_exists", "concept_id", low=0),
            UniqueTogether("concept_once_a_chunk", ("chunk_id", "concept_id")),
            Between("score_is_a_probability", "score", 0, 1),
        ),
    )
    counts = frame.groupby("chunk_id")["concept_id"].nunique()
    per_chunk = Sheet(
        "labelled chunks",
        pd.DataFrame({"chunk_id": counts.index, "n_labels": counts.to_numpy()}),
        ("chunk_id",),
        (
            Between(
                "labels_per_chunk", "n_labels",
                bounds.min_labels_per_chunk, bounds.max_labels_per_chunk,
            ),
        ),
    )  # fmt: skip
    chunks_of_concept = frame.groupby("concept_id")["chunk_id"].nunique()
    commonest = float(chunks_of_concept.max()) if len(chunks_of_concept) else float("nan")
    whole = facts(
        [
            Fact("n_labelled_chunks", len(counts), low=bounds.min_labelled_chunks),
            Fact("n_concepts_in_use", len(chunks_of_concept), low=bounds.min_concepts),
            Fact("commonest_concept_share", share(commonest, len(counts)),
                 high=bounds.max_commonest_concept_share),
        ]
    )  # fmt: skip
    return [rows, per_chunk, whole]
