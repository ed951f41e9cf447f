"""Whether input attribution holds: what it leaves over, and what masking inputs does (§6.1.1)."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from components.charts import Curve, lines
from components.numerals import interval, number
from components.pages import Column, Fact, Markup, figure, table


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Measured(_Part):
    value: float
    low: float
    high: float
    n_groups: int


class _Point(_Part):
    n_inputs: int
    deletion_logits: _Measured
    deletion_random_logits: _Measured
    insertion_logits: _Measured
    insertion_random_logits: _Measured


class _Agreement(_Part):
    rank_correlation: _Measured
    mean_error_logits: _Measured
    mean_observed_logits: _Measured
    slope: _Measured


class _Both(_Part):
    together: _Agreement
    in_parts: _Agreement


class _Masking(_Part):
    n_targets: int
    random_orders: int
    curve: list[_Point]
    deletion_ratio_at: int
    deletion_ratio: _Measured
    agreement: _Both


class Inputs(_Part):
    """The inputs of `summary.json` of Attributions, as far as they are shown."""

    n_targets: int
    mean_evaluations: float
    n_not_reached: int
    tolerance: float
    completeness_error: float
    completeness_interval: _Measured
    masking: _Masking


def facts(found: Inputs) -> list[Fact]:
    """What a reader of shaded tokens should know first."""
    missed, ratio = found.completeness_interval, found.masking.deletion_ratio
    rank = found.masking.agreement.in_parts.rank_correlation
    return [
        Fact("inputs miss", 100 * found.completeness_error, "% of the effect",
             f"{interval(100 * missed.low, 100 * missed.high)} · {found.mean_evaluations:.0f} "
             f"passes a token, n = {found.n_targets} tokens, {found.n_not_reached} of them not "
             f"within {100 * found.tolerance:g}%"),
        Fact(f"masking the top {found.masking.deletion_ratio_at} inputs", ratio.value,
             "× random ones",
             f"{interval(ratio.low, ratio.high)}, n = {found.masking.n_targets} tokens of "
             f"{ratio.n_groups} texts"),
        Fact("masking is foretold", rank.value, "rank correlation",
             f"{interval(rank.low, rank.high)}, inputs moved in parts"),
    ]  # fmt: skip


def masking(found: Inputs) -> Markup:
    """Curves of deletion and insertion, and what was foretold beside what came."""
    points = found.masking.curve
    counts = [float(point.n_inputs) for point in points]
    curves = lines(
        [
            _curve("deleted, strongest first", counts, [p.deletion_logits for p in points]),
            _curve("deleted at random", counts, [p.deletion_random_logits for p in points]),
            _curve("inserted, strongest first", counts, [p.insertion_logits for p in points]),
            _curve("inserted at random", counts, [p.insertion_random_logits for p in points]),
        ],
        "inputs masked, or alone left", "change of the token's logit",
    )  # fmt: skip
    both = found.masking.agreement
    rows = [
        [name, *(_said(one) for one in vars(agreement).values())]
        for name, agreement in (
            ("all inputs together", both.together), ("inputs in parts", both.in_parts),
        )
    ]  # fmt: skip
    return figure(
        curves,
        f"Logits lost without the strongest inputs, and regained with them alone, beside "
        f"{found.masking.random_orders} random orders; n = {found.masking.n_targets} tokens.",
    ) + table(
        [
            Column("attribution along a path of"), Column("rank correlation"),
            Column("mean error", "logits"), Column("mean effect", "logits"), Column("slope"),
        ],
        rows,
        caption="What masking one input does, foretold and observed; 95% intervals over texts",
    )  # fmt: skip


def _curve(name: str, counts: Sequence[float], values: Sequence[_Measured]) -> Curve:
    return Curve(name, counts, [one.value for one in values], dots=True)


def _said(one: _Measured) -> str:
    return f"{number(one.value)} {interval(one.low, one.high)}"
