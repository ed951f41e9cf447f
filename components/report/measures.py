"""Every score with its unit, its n and its interval, by the condition it answers to."""

from components.charts import bars
from components.numerals import interval, number
from components.pages import Cell, Column, Markup, Section, figure, joined, table, unbroken
from components.report.inputs import Score, Scores

CONDITIONS = {
    "capability": "How well it predicts text",
    "coverage": "How much of a prediction the named parts carry",
    "nativeness": "Whether the named parts are on the path to the output",
    "agreement": "Whether an attribution foretells what an intervention does",
    "validity": "Whether interventions stay among states it was trained on",
    "interpretation": "Whether concepts mean what their cards say",
}
_DOMAIN = "bits_per_byte_"


def section(scores: Scores) -> Section:
    """Bits per byte by domain as a picture, everything else as tables."""
    domains = [
        (name.removeprefix(_DOMAIN), score.value)
        for name, score in scores.by_name.items()
        if name.startswith(_DOMAIN)
    ]
    picture = (
        figure(
            bars(sorted(domains, key=lambda item: item[1]), "bits per byte"),
            "Bits per byte of held-out text, by domain. Fewer is better; 8 is what no model needs.",
        )
        if domains
        else Markup()
    )
    groups = [*CONDITIONS, *sorted({s.condition for s in scores.by_name.values()} - {*CONDITIONS})]
    return Section(
        "scores", "Scores",
        "Measured on text the network never saw. Brackets hold 95% intervals over n, the units "
        "that were resampled.",
        picture + joined(_table(condition, scores) for condition in groups),
    )  # fmt: skip


def _table(condition: str, scores: Scores) -> Markup:
    rows = [_row(name, score) for name, score in scores.by_name.items()
            if score.condition == condition]  # fmt: skip
    if not rows:
        return Markup()
    columns = [
        Column("score"), Column("value"), Column("95% interval"), Column("unit"), Column("n"),
        Column("how"),
    ]  # fmt: skip
    title = CONDITIONS.get(condition, condition.capitalize())
    return Markup("<h3>{}</h3>").format(title) + table(columns, rows)


def _row(name: str, score: Score) -> list[Cell]:
    return [
        name, score.value, unbroken(interval(score.low, score.high)), score.unit,
        unbroken(f"{number(score.n)} {score.n_of}"),
        score.note,
    ]  # fmt: skip
