"""How the network learned: losses and the interpretability metrics along both phases."""

from collections.abc import Sequence

from components.charts import Curve as Line
from components.charts import Reference, lines
from components.pages import Markup, Section, figure, joined, side_by_side
from components.report.inputs import Curve, Scores

_METRICS = (
    ("concept_contribution", "concept contribution (share)",
     "Share of a token's logit that comes from concepts. Higher is better."),
    ("concept_loss", "concept loss (nats)",
     "How badly a chunk's concepts are told from its text. Lower is better."),
    ("independence_loss", "independence loss",
     "Linear dependence between known and unknown concepts. Lower is better."),
    ("reconstruction_loss", "reconstruction loss",
     "What the unknown concepts miss of the hidden state. Lower is better."),
)  # fmt: skip


def section(phases: Sequence[tuple[str, Curve]], scores: Scores) -> Section:
    """Both phases on one axis of tokens: the second begins where the first ended."""
    shifts, start = [], 0.0
    for _, curve in phases:
        shifts.append(start)
        start += max(curve.columns["tokens"], default=0.0)
    unigram = scores.first("unigram_nats_per_token")
    losses = [
        _line(f"{phase}, {which}", curve, column, shift, dots=column.startswith("valid"))
        for (phase, curve), shift in zip(phases, shifts, strict=True)
        for which, column in (("train", "nll_nats"), ("held out", "valid_nll_nats"))
    ]
    loss = figure(
        lines(losses, "training tokens", "nats per masked token",
              [Reference("unigram", unigram.value)], width=1080, height=360),
        "Loss per masked token. The dashed line is what token frequencies alone reach on the same "
        "held-out tokens: what lies under it was learned from context. Train and held out mask at "
        "different rates, so their levels compare only with themselves.",
    )  # fmt: skip
    metrics = joined(
        side_by_side(*(_metric(phases, shifts, *metric) for metric in pair))
        for pair in (_METRICS[:2], _METRICS[2:])
    )
    return Section(
        "learning", "Learning",
        "Pretraining builds the network and its concepts together; mid-training takes the "
        "teacher's hand away.", loss + metrics,
    )  # fmt: skip


def _metric(
    phases: Sequence[tuple[str, Curve]], shifts: Sequence[float], column: str, label: str, say: str
) -> Markup:
    drawn = [
        _line(phase, curve, column, shift, dots=True)
        for (phase, curve), shift in zip(phases, shifts, strict=True)
    ]
    return figure(lines(drawn, "training tokens", label, width=540, height=240), say)


def _line(name: str, curve: Curve, column: str, shift: float, *, dots: bool) -> Line:
    tokens = [tokens + shift for tokens in curve.columns["tokens"]]
    return Line(name, tokens, curve.columns[column], dots)
