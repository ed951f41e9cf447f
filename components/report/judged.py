"""What a judge says of tags, concepts and labels, beside what it says of shuffled names."""

from components.numerals import interval
from components.pages import Cell, Column, Section, note, table, unbroken
from components.report.inputs import Score, Scores

_SHOWN = {
    "tags": "tags of the tagger", "concepts": "concepts its tags stand for",
    "labels": "labels of the annotator",
}  # fmt: skip
_ELSEWHERE = "judge_calibration_error_on_"


def section(scores: Scores) -> Section:
    """A row for each of the three; the shuffled names are the floor they stand on."""
    rows: list[list[Cell]] = []
    for name, shown in _SHOWN.items():
        right, wrong = (scores.by_name[f"judged_{name}{s}"] for s in ("", "_shuffled"))
        accepted = scores.by_name[f"judged_{name}_acceptable"]
        rows.append(
            [shown, *_cells(right), *_cells(wrong), *_cells(accepted), right.unit, right.note]
        )
    columns = [
        Column("judged"), Column("mean"), Column("95% interval"), Column("shuffled names"),
        Column("95% interval"), Column("acceptable", "share"), Column("95% interval"),
        Column("unit"), Column("how"),
    ]  # fmt: skip
    return Section(
        "judged", "Whether the names fit",
        "A judge read chunks with the names that were given to them, and the same chunks with "
        "the names of others.",
        table(columns, rows) + note(_worth(scores)),
    )  # fmt: skip


def _worth(scores: Scores) -> str:
    if not scores.has("judge_auc"):
        return "The judge is a language model. How far people agree with it was not measured here."
    auc, error = scores.by_name["judge_auc"], scores.by_name["judge_calibration_error"]
    elsewhere = "".join(
        f", on {name.removeprefix(_ELSEWHERE)} {score.value:.2f}"
        for name, score in scores.by_name.items()
        if name.startswith(_ELSEWHERE)
    )
    return (
        f"The judge is a cosine, made a probability on pairs that people labelled: on others of "
        f"these its AUC is {auc.value:.2f} {interval(auc.low, auc.high)} and its calibration error "
        f"{error.value:.2f} {interval(error.low, error.high)} (n = {auc.n} {auc.n_of}){elsewhere}. "
        f"It is lenient: tags that the same encoder found unlike their chunk were dropped before."
    )


def _cells(score: Score) -> list[Cell]:
    return [score.value, unbroken(interval(score.low, score.high))]
