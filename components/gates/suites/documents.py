"""Documents@1: whole texts, none twice, none in two splits, every domain in every split."""

import hashlib

import pandas as pd
import pyarrow as pa

from components.gates.config import DocumentBounds
from components.gates.rules import Between, Fact, OneOf, Present, Sheet, Unique, facts

SPLITS = ("train", "valid", "test")
_CONTROL = "[\x00-\x08\x0e-\x1f\x7f\ufffd]"
_NEVER_MISSING = ("doc_id", "source", "domain", "licence", "title", "split", "text")


def sheets(table: pa.Table, bounds: DocumentBounds) -> list[Sheet]:
    """Rows by document, then one row a domain, then the whole."""
    frame = table.to_pandas()
    text = frame["text"].astype("str")
    frame["visible_chars"] = text.str.strip().str.len()
    frame["control_share"] = text.str.count(_CONTROL) / text.str.len().clip(lower=1)
    frame["text_digest"] = text.str.strip().map(_digest, na_action="ignore")
    frame["n_splits_of_text"] = frame.groupby("text_digest")["split"].transform("nunique")
    rows = Sheet(
        "documents",
        frame.drop(columns="text").assign(text=frame["text"].where(frame["text"].isna(), "…")),
        ("doc_id",),
        (
            *(Present(f"{column}_present", column) for column in _NEVER_MISSING),
            Unique("doc_id_unique", "doc_id"),
            OneOf("split_known", "split", SPLITS),
            Between("text_not_blank", "visible_chars", low=1),
            Between("text_readable", "control_share", high=bounds.max_control_share),
            Unique("text_unique", "text_digest"),
            Between("text_in_one_split", "n_splits_of_text", high=1),
        ),
    )
    return [rows, _domains(frame, bounds), _whole(frame, bounds)]


def _domains(frame: pd.DataFrame, bounds: DocumentBounds) -> Sheet:
    counts = pd.crosstab(frame["domain"], frame["split"]).reindex(
        columns=list(SPLITS), fill_value=0
    )
    floor = bounds.min_documents_per_domain_and_split
    return Sheet(
        "domains",
        counts.reset_index(),
        ("domain",),
        tuple(Between(f"every_domain_in_{split}", split, low=floor) for split in SPLITS),
    )


def _whole(frame: pd.DataFrame, bounds: DocumentBounds) -> Sheet:
    return facts(
        [
            Fact("n_documents", len(frame), low=bounds.min_documents),
            Fact("n_domains", frame["domain"].nunique(), low=bounds.min_domains),
        ]
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
