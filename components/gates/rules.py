"""Rules in our own words: a name, the column it looks at, what must hold.

`validation.py` says them to Great Expectations. What it cannot say natively (a gap between chunks,
a text in two splits, a share of a table) is computed as a column or as a fact first, so that every
rule stays one named statement about one column, and a broken one can name its rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class Between:
    """Every value lies between the limits, both included; None is no limit. NaN is missing."""

    name: str
    column: str
    low: float | None = None
    high: float | None = None

    @property
    def expected(self) -> str:
        if self.low == self.high:
            return f"{self.low:g}"
        if self.low is None or self.high is None:
            return f"at least {self.low:g}" if self.high is None else f"at most {self.high:g}"
        return f"{self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class Present:
    """No value is missing (null or NaN)."""

    name: str
    column: str
    expected: str = "no missing value"


@dataclass(frozen=True)
class OneOf:
    """Every value is one of these."""

    name: str
    column: str
    values: tuple[str, ...]

    @property
    def expected(self) -> str:
        return "one of " + ", ".join(self.values)


@dataclass(frozen=True)
class Unique:
    """No two rows hold the same value."""

    name: str
    column: str
    expected: str = "no value twice"


@dataclass(frozen=True)
class UniqueTogether:
    """No two rows hold the same values in all of these columns."""

    name: str
    columns: tuple[str, ...]

    @property
    def column(self) -> str:
        return ", ".join(self.columns)

    @property
    def expected(self) -> str:
        return "no combination twice"


@dataclass(frozen=True)
class Equal:
    """Two columns agree in every row."""

    name: str
    column: str
    other: str

    @property
    def expected(self) -> str:
        return f"equal to {self.other}"


Rule = Between | Present | OneOf | Unique | UniqueTogether | Equal


@dataclass(frozen=True)
class Sheet:
    """A table, the columns that identify its rows, and the rules it must obey."""

    name: str
    frame: pd.DataFrame
    ids: tuple[str, ...]
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class Fact:
    """One number about a whole artifact with its limits. NaN means it could not be computed."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None


def facts(items: Sequence[Fact]) -> Sheet:
    """Numbers about the whole as a sheet of one row: a column, and a rule of its name, each."""
    return Sheet(
        "facts",
        pd.DataFrame({item.name: [float(item.value)] for item in items}),
        (),
        tuple(Between(item.name, item.name, item.low, item.high) for item in items),
    )


def share(part: float, whole: float) -> float:
    """`part / whole`, NaN where there is no whole: nothing is not a share of nothing."""
    return part / whole if whole else float("nan")
