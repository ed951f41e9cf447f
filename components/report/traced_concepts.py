"""Whether concept attribution holds: the sums, the shares, and what removing a concept does."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Literal

from pydantic import BaseModel, ConfigDict

from components.numerals import interval, number
from components.pages import Cell, Column, Fact, Markup, table
from components.shades import signed_bar, swatch


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Measured(_Part):
    value: float
    low: float
    high: float
    n_groups: int


class _Exact(_Part):
    n_pairs: int
    n_pairs_not_kept: int
    rank_correlation: float
    largest_error_logits: float
    mean_observed_logits: float


class _Compared(_Part):
    n_pairs: int
    rank_correlation: _Measured
    mean_error: _Measured
    mean_observed: _Measured


class _BothExact(_Part):
    known: _Exact
    unknown: _Exact


class _Both(_Part):
    known: _Compared
    unknown: _Compared


class _Upstream(_Both):
    after_layer: int


class _Removal(_Part):
    at_the_bottleneck: _BothExact
    log_probability: _Both
    upstream: list[_Upstream]


class _Shares(_Part):
    known: _Measured
    unknown: _Measured
    residual: _Measured
    known_signed: _Measured
    unknown_signed: _Measured
    residual_signed: _Measured


class _UnknownNames(_Part):
    n_tried: int
    n_named: int
    least_auc: float


class Concepts(_Part):
    """The concepts of `summary.json` of Attributions, as far as they are shown."""

    known_only_share: _Measured
    concept_by_concept: _Shares
    largest_sum_error_logits: float
    unknown_names: _UnknownNames
    named_unknown_share: _Measured
    removal: _Removal


class Concept(_Part):
    """What one concept did for a text."""

    kind: Literal["known", "unknown"]
    concept_id: int
    name: str
    share: float
    n_tokens: int

    @property
    def ref(self) -> str:
        return f"{self.kind}:{self.concept_id}"


def facts(found: Concepts) -> list[Fact]:
    """What a reader of named concepts should know first."""
    exact, known = found.removal.at_the_bottleneck, found.known_only_share
    worst = max(exact.known.largest_error_logits, exact.unknown.largest_error_logits)
    names, named = found.unknown_names, found.named_unknown_share
    return [
        Fact("sum of a token's parts", found.largest_sum_error_logits, "logits off",
             "concepts and residual against the network's own logit, the worst token"),
        Fact("known concepts carry", 100 * known.value, "% of logits",
             f"{interval(100 * known.low, 100 * known.high)}, the library alone, absolute"),
        Fact("removing a concept is foretold", worst, "logits off",
             f"the worst of {exact.known.n_pairs + exact.unknown.n_pairs} pairs of a token and a "
             f"concept, known and unknown, at the bottleneck"),
        Fact("unknown concepts with a name", names.n_named, f"of {names.n_tried} tried",
             f"a judge tells held-out chunks by it, AUC ≥ {names.least_auc:g}; they are "
             f"{100 * named.value:.1f}% {interval(100 * named.low, 100 * named.high)} of what "
             f"unknown concepts did here"),
    ]  # fmt: skip


def removal(found: Concepts) -> Markup:
    """What was foretold of removals beside what came, the exact apart from the rest."""
    exact, log, shares = (
        found.removal.at_the_bottleneck, found.removal.log_probability, found.concept_by_concept,
    )  # fmt: skip
    rows: list[list[Cell]] = [
        [f"logit, at the bottleneck: {kind}", f"{one.n_pairs}", f"{one.rank_correlation:.6f}",
         f"{one.largest_error_logits:.1e} at most", number(one.mean_observed_logits)]
        for kind, one in (("known", exact.known), ("unknown", exact.unknown))
    ]  # fmt: skip
    measured = [("log-probability, in nats", log)] + [
        (f"logit, removed after layer {one.after_layer}", one) for one in found.removal.upstream
    ]
    rows += [
        [f"{name}: {kind}", f"{one.n_pairs}", *map(_said, _figures(one))]
        for name, both in measured
        for kind, one in (("known", both.known), ("unknown", both.unknown))
    ]
    columns = [
        Column("removed"), Column("pairs"), Column("rank correlation"), Column("mean error"),
        Column("mean effect"),
    ]  # fmt: skip
    parts = [
        [name, _said(absolute), _said(signed)]
        for name, absolute, signed in (
            ("known concepts", shares.known, shares.known_signed),
            ("unknown concepts", shares.unknown, shares.unknown_signed),
            ("residual", shares.residual, shares.residual_signed),
        )
    ]
    return table(
        columns, rows,
        caption="Removing a concept, foretold and observed. At the bottleneck the two are one sum; "
        "earlier, the layers in between answer; 95% intervals over texts",
    ) + table(
        [Column("part"), Column("absolute share"), Column("signed share")], parts,
        caption="Shares of a token's logit, every concept counted by itself; 95% intervals over "
        "texts. Signed shares cancel",
    )  # fmt: skip


def shown(concepts: Sequence[Concept], n: int) -> list[Concept]:
    """Known and unknown ones by turns, so that neither kind hides the other, at most n."""
    known, unknown = (
        [concept for concept in concepts if concept.kind == kind] for kind in ("known", "unknown")
    )
    turns = [one for pair in zip_longest(known, unknown) for one in pair if one is not None]
    return turns[:n]


def listed(shown: Sequence[Concept], colour: dict[str, int]) -> Markup:
    """Concepts of one text with their colours and shares."""
    largest = max((abs(concept.share) for concept in shown), default=0.0)
    rows: list[list[Cell]] = [
        [
            Markup("{}{}").format(swatch(colour.get(concept.ref, -1)), concept.name),
            signed_bar(concept.share, largest),
            100 * concept.share,
            concept.n_tokens,
        ]
        for concept in shown
    ]
    return table(
        [Column("concept"), Column("against … for"), Column("share", "% of the logits"),
         Column("tokens")], rows,
    )  # fmt: skip


def _figures(one: _Compared) -> tuple[_Measured, ...]:
    return one.rank_correlation, one.mean_error, one.mean_observed


def _said(one: _Measured) -> str:
    return f"{number(one.value)} {interval(one.low, one.high)}"
