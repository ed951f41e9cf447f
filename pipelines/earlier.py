"""Runs that were made before, by the name a person gives, or the newest."""

from pathlib import Path
from typing import Annotated

import typer

from components import records
from pipelines import recipes

RunsOption = Annotated[
    Path, typer.Option("--runs", help="Folder of runs and artifacts.", envvar="CLEARSTORY_RUNS")
]


def chosen_run(runs: Path, run_id: str) -> Path:
    """The folder of a run of `runs`; the newest where no id is given. ValueError says what is."""
    made = sorted(path.parent for path in runs.glob("*/run.json"))
    if not made:
        raise ValueError(f"There are no runs in {runs.resolve()}. Begin with: clearstory run demo")
    if not run_id:
        return max(made, key=lambda folder: records.read_run(folder).started)
    if runs / run_id not in made:
        known = [folder.name for folder in made]
        raise ValueError(f"There is no run {run_id!r}. {recipes.nearest(run_id, known)}")
    return runs / run_id
