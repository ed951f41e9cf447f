"""A first look at a table, for the reader of a gate report: what is in each column."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from components.gates.rules import Sheet

_N_COMMONEST = 3
_TEXT_CHARS = 40


@dataclass(frozen=True)
class ColumnProfile:
    """One column in numbers; `values` is its extent, or its commonest values."""

    sheet: str
    column: str
    n_values: int
    n_missing: int
    n_distinct: int
    values: str


def profile(sheets: Sequence[Sheet]) -> list[ColumnProfile]:
    """Every column of every sheet of more than one row."""
    return [
        _column(sheet.name, str(name), sheet.frame[name])
        for sheet in sheets
        if len(sheet.frame) > 1
        for name in sheet.frame.columns
    ]


def _column(sheet: str, name: str, column: "pd.Series[object]") -> ColumnProfile:
    kept = column.dropna()
    return ColumnProfile(
        sheet, name, len(kept), len(column) - len(kept), int(kept.nunique()), _values(kept)
    )


def _values(kept: "pd.Series[object]") -> str:
    if kept.empty:
        return ""
    if pd.api.types.is_numeric_dtype(kept) and not pd.api.types.is_bool_dtype(kept):
        low, middle, high = (f"{float(x):.4g}" for x in (kept.min(), kept.median(), kept.max()))
        return f"{low} … {middle} … {high}"
    counts = kept.astype("str").value_counts()
    commonest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_N_COMMONEST]
    return ", ".join(f"{str(value)[:_TEXT_CHARS]} ({n})" for value, n in commonest)
