"""The policy around Great Expectations: what it lets pass by itself does not pass here."""

import pandas as pd
import pytest

from components.gates.rules import Between, Fact, Sheet, Unique, facts
from components.gates.validation import judge, validate


def _sheet(values: list[float | None], rule: Between | Unique) -> Sheet:
    frame = pd.DataFrame({"row": range(len(values)), "x": pd.Series(values, dtype="float64")})
    return Sheet("rows", frame, ("row",), (rule,))


@pytest.mark.parametrize("rule", [Between("limits", "x", 0, 1), Unique("unique", "x")])
@pytest.mark.parametrize("values", [[], [None, None]])
def test_a_rule_that_saw_no_value_is_broken(rule, values):
    (finding,) = validate([_sheet(values, rule)], n_bad_rows=3)
    assert not finding.passed
    assert "nothing to evaluate" in finding.observed


def test_a_fact_that_could_not_be_computed_is_broken():
    (finding,) = validate([facts([Fact("share", float("nan"), high=1.0)])], n_bad_rows=3)
    assert not finding.passed


def test_an_expectation_that_raises_is_broken_and_says_why():
    sheet = _sheet([0.5], Between("limits", "absent", 0, 1))
    (finding,) = validate([sheet], n_bad_rows=3)
    assert not finding.passed
    assert 'The column "absent" in BatchData does not exist' in finding.observed


def test_a_rule_without_a_result_is_broken():
    rule = Between("limits", "x", 0, 1)
    finding = judge(_sheet([0.5], rule), rule, None)
    assert not finding.passed
    assert "no result" in finding.observed


def test_a_result_that_calls_itself_a_success_but_found_rows_is_broken():
    rule = Between("limits", "x", 0, 1)
    result = {
        "success": True,
        "exception_info": {"raised_exception": False},
        "result": {"element_count": 1, "unexpected_count": 1},
    }
    assert not judge(_sheet([2.0], rule), rule, result).passed


def test_infinity_lies_outside_every_limit_and_is_named_in_plain_json():
    (finding,) = validate([_sheet([0.5, float("inf")], Between("limits", "x", 0, 1))], 3)
    assert finding.rows == ({"row": 1, "x": "inf"},)


def test_findings_come_in_the_order_of_the_rules():
    rules = tuple(Between(name, "x", 0, 1) for name in "cab")
    sheet = Sheet("rows", pd.DataFrame({"x": [0.5]}), (), rules)
    assert [finding.rule for finding in validate([sheet], 1)] == ["c", "a", "b"]
