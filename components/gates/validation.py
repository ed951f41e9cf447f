"""Sheets through Great Expectations, under a policy of our own.

Its verdict alone would let much pass: an empty or all-null column satisfies most expectations, an
expectation that raised or vanished can leave the whole green. Here a rule holds only if it has a
result, raised nothing, looked at one value at least, and found no exception to it. Offending rows
are named by their ids.
"""

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from components.gates.rules import (
    Between,
    Equal,
    OneOf,
    Present,
    Rule,
    Sheet,
    Unique,
    UniqueTogether,
)

os.environ["GX_ANALYTICS_ENABLED"] = "false"
with warnings.catch_warnings():  # it imports modules of the standard library that are deprecated
    warnings.simplefilter("ignore", DeprecationWarning)
    import great_expectations as gx
    from great_expectations.expectations import core
    from great_expectations.expectations.expectation import Expectation


Row = Mapping[str, str | int | float | None]
"""Ids of an offending row, then the value."""


@dataclass(frozen=True)
class Finding:
    """What became of one rule. `rows` are the ids of offending rows, the first few."""

    rule: str
    column: str
    expected: str
    passed: bool
    observed: str
    n_bad_rows: int
    rows: tuple[Row, ...] = ()


def validate(sheets: Sequence[Sheet], n_bad_rows: int) -> list[Finding]:
    """One finding a rule, in the order of the rules, whatever became of it."""
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    source = context.data_sources.add_pandas("gate")
    findings: list[Finding] = []
    for sheet in sheets:
        batch = (
            source.add_dataframe_asset(sheet.name)
            .add_batch_definition_whole_dataframe(sheet.name)
            .get_batch({"dataframe": sheet.frame})
        )
        suite = gx.ExpectationSuite(
            name=sheet.name, expectations=[expectation_of(rule) for rule in sheet.rules]
        )
        validated = batch.validate(
            suite,
            result_format={
                "result_format": "SUMMARY",
                "unexpected_index_column_names": list(sheet.ids),
                "partial_unexpected_count": n_bad_rows,
            },
        )
        by_rule = {
            result.expectation_config.meta["rule"]: result.to_json_dict()
            for result in validated.results
            if result.expectation_config and result.expectation_config.meta
        }
        findings.extend(judge(sheet, rule, by_rule.get(rule.name)) for rule in sheet.rules)
    return findings


def expectation_of(rule: Rule) -> Expectation:
    """The rule as an expectation; `meta` carries its name there and back."""
    meta = {"rule": rule.name}
    match rule:
        case Between():
            return core.ExpectColumnValuesToBeBetween(
                column=rule.column, min_value=rule.low, max_value=rule.high, meta=meta
            )
        case Present():
            return core.ExpectColumnValuesToNotBeNull(column=rule.column, meta=meta)
        case OneOf():
            return core.ExpectColumnValuesToBeInSet(
                column=rule.column, value_set=list(rule.values), meta=meta
            )
        case Unique():
            return core.ExpectColumnValuesToBeUnique(column=rule.column, meta=meta)
        case UniqueTogether():
            return core.ExpectCompoundColumnsToBeUnique(column_list=list(rule.columns), meta=meta)
        case Equal():
            return core.ExpectColumnPairValuesToBeEqual(
                column_A=rule.column, column_B=rule.other,
                ignore_row_if="neither", meta=meta,
            )  # fmt: skip


def judge(sheet: Sheet, rule: Rule, result: Mapping[str, object] | None) -> Finding:
    """The policy: no result, an exception and nothing evaluated are failures, each by name."""
    if result is None:
        return _failed(rule, "no result came back for this rule")
    raised = _exception(result["exception_info"])
    if raised:
        return _failed(rule, f"could not be evaluated: {raised}")
    details = result["result"]
    assert isinstance(details, dict), f"{rule.name}: result is {type(details).__name__}"
    n_evaluated = int(details["element_count"]) - int(details.get("missing_count", 0))
    if n_evaluated < 1:
        return _failed(rule, f"nothing to evaluate: {details['element_count']} rows, all missing")
    n_bad = int(details["unexpected_count"])
    passed = result["success"] is True and n_bad == 0
    rows = _named(details.get("partial_unexpected_index_list", ()), sheet.ids)
    observed = _observed(sheet.frame, rule, n_bad, n_evaluated)
    return Finding(rule.name, rule.column, rule.expected, passed, observed, n_bad, rows)


def _named(rows: Sequence[Mapping[str, object]], ids: Sequence[str]) -> tuple[Row, ...]:
    """Offending rows, their ids first; empty where rows have none. JSON knows no infinity."""
    if not ids:
        return ()
    return tuple(
        {name: _plain(row[name]) for name in [*ids, *(n for n in row if n not in ids)]}
        for row in rows
    )


def _plain(value: object) -> str | int | float | None:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _failed(rule: Rule, why: str) -> Finding:
    return Finding(rule.name, rule.column, rule.expected, passed=False, observed=why, n_bad_rows=0)


def _exception(info: object) -> str:
    """The first exception of a result; one alone comes flat, several come by metric."""
    assert isinstance(info, dict), f"exception_info is {type(info).__name__}"
    for entry in [info] if "raised_exception" in info else info.values():
        if entry["raised_exception"]:
            return str(entry["exception_message"]).splitlines()[0]
    return ""


def _observed(frame: pd.DataFrame, rule: Rule, n_bad: int, n_evaluated: int) -> str:
    if isinstance(rule, Between):
        column = frame[rule.column]
        low, high = _text(column.min()), _text(column.max())
        extent = low if low == high else f"{low} to {high}"
        return extent if n_bad == 0 or n_evaluated == 1 else f"{extent}; {n_bad} outside"
    return f"{n_bad} of {n_evaluated} rows break it" if n_bad else f"{n_evaluated} rows hold"


def _text(value: object) -> str:
    """Whole numbers whole, others with six digits."""
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() else f"{value:.6g}"
    return str(value)
