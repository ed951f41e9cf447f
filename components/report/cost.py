"""What it cost: tokens, parameters, operations phase by phase, and the time of every stage."""

import csv
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from components.pages import Cell, Column, Section, table
from components.provenance import Provenance
from components.report.inputs import Curve


def section(phases: Sequence[tuple[str, Curve]], fit: Path, trail: Sequence[Provenance]) -> Section:
    """One row a phase, one for the whole ladder of the scaling study, and one a stage for time."""
    rows: list[list[Cell]] = [
        [name, curve.run.n_parameters, curve.run.n_tokens,
         curve.run.n_tokens / curve.run.n_parameters, curve.run.flops]
        for name, curve in phases
    ]  # fmt: skip
    ladder = ladder_of(fit)
    rows.append(
        [f"scaling ladder, {len(ladder)} runs", None, sum(run["n_tokens"] for run in ladder), None,
         sum(run["flops"] for run in ladder)]
    )  # fmt: skip
    columns = [
        Column("phase"), Column("parameters"), Column("tokens"), Column("tokens", "per parameter"),
        Column("training", "FLOPs"),
    ]  # fmt: skip
    return Section(
        "cost", "What it cost",
        "Counted, not guessed: floating-point operations follow from the network and the tokens. "
        "Time is the wall time of each stage on the machine that made its artifact, also where a "
        "later run reused it.",
        table(columns, rows) + _times(trail),
    )  # fmt: skip


def _times(trail: Sequence[Provenance]) -> Markup:
    """Wall time by task, and their sum."""
    rows: list[list[Cell]] = [[made.task, made.seconds, made.host] for made in trail]
    rows.append(["all stages", sum(made.seconds for made in trail), None])
    return table([Column("stage"), Column("wall time", "seconds"), Column("host")], rows)


def ladder_of(fit: Path) -> list[dict[str, float]]:
    """Tokens and operations of every run the laws were fitted to."""
    with (fit / "points.csv").open(newline="") as file:
        return [
            {"n_tokens": float(row["n_tokens"]), "flops": float(row["flops"])}
            for row in csv.DictReader(file)
        ]
