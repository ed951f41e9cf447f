"""What a small ladder of runs says about larger ones, and how little that is."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from components import contracts
from components.numerals import interval
from components.pages import Cell, Column, Markup, Section, figure, joined, note, png, table
from components.report.inputs import read_json


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Estimate(_Part):
    value: float
    low: float | None
    high: float | None
    unit: str


class _Prediction(_Part):
    budget_flops: float
    factor: float
    loss: _Estimate


class _Family(_Part):
    n_runs: int
    estimator: str
    exponents: dict[str, _Estimate]
    extrapolation: list[_Prediction]
    caveats: list[str]


class _Fit(_Part):
    form: str
    n_runs: int
    interval: str
    refused_beyond_factor: float
    families: dict[str, _Family]


def section(fit: Path) -> Section:
    """The picture, the exponents with intervals, and the caveats in full."""
    found = _Fit.model_validate_json(read_json(fit, contracts.SCALING_FIT, "fit.json"))
    body = figure(
        png(fit / "curve.png", "Loss against size by budget, and against compute"),
        f"{found.n_runs} runs. {found.form}. Intervals: {found.interval}.",
    )
    return Section(
        "scaling", "Scaling",
        "Small networks trained at several budgets, to see which way the loss goes. A ladder this "
        "short gives a direction, not a law.",
        body + joined(_family(name, family) for name, family in found.families.items()),
    )  # fmt: skip


def _family(name: str, family: _Family) -> Markup:
    fitted = dict(family.exponents)
    for found in family.extrapolation:
        at = f"loss at {found.budget_flops:.2g} FLOPs, {found.factor:g} × the largest budget"
        fitted[at] = found.loss
    rows: list[list[Cell]] = [
        [what, estimate.value, _interval(estimate), estimate.unit]
        for what, estimate in fitted.items()
    ]
    columns = [Column("fitted"), Column("value"), Column("95% interval"), Column("unit")]
    heading = Markup("<h3>{}</h3>").format(f"{name}, {family.n_runs} runs, {family.estimator}")
    return heading + joined(note(caveat) for caveat in family.caveats) + table(columns, rows)


def _interval(estimate: _Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return "none: too few runs"
    return interval(estimate.low, estimate.high)
