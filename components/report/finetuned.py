"""What fine-tuning did: the loss on held-out answers and the four metrics, before and after."""

from components.numerals import interval
from components.pages import Cell, Column, Section, table, unbroken
from components.report.inputs import Score, Scores

_BEFORE, _AFTER = "_before", "_after"


def section(scores: Scores) -> Section:
    """A row a measure; what changed in the same tokens stands below."""
    names = [name.removesuffix(_BEFORE) for name in scores.by_name if name.endswith(_BEFORE)]
    rows: list[list[Cell]] = [
        [name, *_shown(scores.by_name[name + _BEFORE]), *_shown(scores.by_name[name + _AFTER]),
         scores.by_name[name + _AFTER].unit]
        for name in names
    ]  # fmt: skip
    rows += [
        [name, None, "", *_shown(score), f"{score.unit}, {score.note}"]
        for name, score in scores.by_name.items()
        if not name.endswith((_BEFORE, _AFTER))
    ]
    columns = [
        Column("score"), Column("before"), Column("95% interval"), Column("after"),
        Column("95% interval"), Column("unit"),
    ]  # fmt: skip
    return Section(
        "finetuning", "Learning to answer",
        "The mid-trained network was trained on conversations, its prompts whole and its answers "
        "asked for. Measured on answers of conversations it was not trained on.",
        table(columns, rows),
    )  # fmt: skip


def _shown(score: Score) -> list[Cell]:
    return [score.value, unbroken(interval(score.low, score.high))]
