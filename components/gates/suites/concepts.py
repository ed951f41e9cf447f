"""Concepts@1: a frozen library whose ids are row numbers and whose names mean one thing each."""

import numpy as np
import pandas as pd
import pyarrow as pa

from components.gates.config import ConceptBounds
from components.gates.rules import Between, Fact, OneOf, Present, Sheet, Unique, facts
from components.gates.suites.tags import KINDS

_COLUMNS = (
    "concept_id", "name", "description", "kind", "parent", "taxonomy", "prevalence", "n_chunks",
    "coherence",
)  # fmt: skip
_CAPPED = ("tone", "document")


def sheets(table: pa.Table, n_concepts_declared: float, bounds: ConceptBounds) -> list[Sheet]:
    """Rows by concept, then the whole. `n_concepts_declared` is what `library.json` says."""
    frame = table.drop(["members"]).to_pandas()
    members = table.column("members").to_pylist()
    frame["n_members"] = [None if tags is None else len(tags) for tags in members]
    frame["n_members"] = pd.to_numeric(frame["n_members"])
    capped = frame["kind"].isin(_CAPPED)
    frame["capped_prevalence"] = frame["prevalence"].where(capped, 0.0)
    frame["row_offset"] = frame["concept_id"] - np.arange(len(frame))
    name = frame["name"].astype("str")
    frame["folded_name"] = name.str.strip().str.casefold()
    frame["name_chars"] = name.str.strip().str.len()
    rows = Sheet(
        "concepts",
        frame,
        ("concept_id", "name"),
        (
            *(Present(f"{column}_present", column) for column in _COLUMNS),
            Between("concept_id_is_row_number", "row_offset", 0, 0),
            Unique("name_unique_case_folded", "folded_name"),
            Between("name_not_blank", "name_chars", low=1),
            OneOf("kind_known", "kind", KINDS),
            Between("prevalence_within_cap", "capped_prevalence", 0, bounds.max_prevalence),
            Between("prevalence_a_share", "prevalence", 0, bounds.max_prevalence_of_others),
            Between("coherence_is_a_cosine", "coherence", -1, 1 + 1e-6),
            Between("chunks_per_concept", "n_chunks", low=bounds.min_chunks_per_concept),
            Between("members_not_empty", "n_members", low=1),
        ),
    )
    whole = facts(
        [
            Fact("n_concepts", len(frame), low=bounds.min_concepts),
            Fact("n_concepts_not_in_library_file", n_concepts_declared - len(frame), 0, 0),
        ]
    )
    return [rows, whole]
