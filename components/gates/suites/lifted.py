"""LiftedWords@1: tokens that a concept makes likelier, with the evidence for each."""

import pandas as pd
import pyarrow as pa

from components.gates.config import LiftedBounds
from components.gates.rules import Between, Fact, Present, Sheet, UniqueTogether, facts

_LARGEST = 1e6
"""Above any log odds of counts: what is larger is not finite."""


def sheets(table: pa.Table, bounds: LiftedBounds) -> list[Sheet]:
    """Rows by concept and token, one row a concept, then the whole."""
    frame = table.to_pandas()
    rows = Sheet(
        "lifted words",
        frame,
        ("concept_id", "token_id"),
        (
            *(Present(f"{column}_present", column) for column in frame.columns),
            Between("concept_id_exists", "concept_id", low=0),
            Between("token_id_exists", "token_id", low=0),
            UniqueTogether("token_once_a_concept", ("concept_id", "token_id")),
            Between("log_odds_finite", "log_odds", -_LARGEST, _LARGEST),
            Between("support_at_least_its_floor", "support", low=bounds.min_support),
        ),
    )
    counts = frame.groupby("concept_id")["token_id"].nunique()
    per_concept = Sheet(
        "concepts",
        pd.DataFrame({"concept_id": counts.index, "n_words": counts.to_numpy()}),
        ("concept_id",),
        (Between("words_per_concept", "n_words", 1, bounds.max_words_per_concept),),
    )
    whole = facts(
        [
            Fact("n_words", len(frame), low=bounds.min_words),
            Fact("n_concepts_with_words", len(counts), low=bounds.min_concepts),
        ]
    )
    return [rows, per_concept, whole]
