"""What a run leaves behind for people: one JSON file a task, and a line a moment of progress.

    <run>/run.json                  the run: recipe, commit, status
    <run>/stages/<task>.json        one task: status, key, inputs, outputs, seconds, error
    <run>/events/<task>.jsonl       metrics by step, as the stage told them
    <run>/progress.jsonl            what the terminal shows while the run goes on

Files are replaced by rename, so a reader never meets half of one.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from components.contracts import Manifest
from model.config import Config
from model.events import Event

Status = Literal["RUNNING", "FINISHED", "REUSED", "FAILED", "KILLED"]


class StageRecord(Config):
    """One task of a run, as it stands."""

    task: str
    stage: str
    status: Status
    started: str
    """UTC, ISO 8601."""

    seconds: float = 0.0
    """Wall time of the stage itself."""

    overhead_seconds: float = 0.0
    """Wall time of key, lease, commit and tracking."""

    import_seconds: float
    """From the start of the task's process to the stage: interpreter, kfp, the stage's imports."""

    key: str
    why: str
    """Why it ran, or that it was reused."""

    config: dict[str, object]
    inputs: dict[str, list[Manifest]]
    gates: dict[str, Manifest]
    outputs: dict[str, Manifest]
    error: str = ""
    exit_code: int = 0
    """What the command ends with if this task stopped it (`components.launch`)."""

    pid: int


class RunRecord(Config):
    """One pipeline run."""

    run_id: str
    recipe: str
    status: Status
    started: str
    seconds: float = 0.0
    commit: str
    seed: int
    origin: str = ""
    tracking_uri: str
    parent_run: str
    """MLflow run id of the pipeline run."""

    pid: int


def write_stage(record: StageRecord, run_folder: Path) -> None:
    """Put a task's record in place."""
    _replace(run_folder / "stages" / f"{record.task}.json", record.model_dump_json(indent=1))


def write_run(record: RunRecord, run_folder: Path) -> None:
    """Put the run's record in place."""
    _replace(run_folder / "run.json", record.model_dump_json(indent=1))


def read_run(run_folder: Path) -> RunRecord:
    """The run's record. Raises FileNotFoundError where there is no run."""
    return RunRecord.model_validate_json((run_folder / "run.json").read_text())


def read_stages(run_folder: Path) -> list[StageRecord]:
    """The records of every task that has begun, in the order in which they began."""
    files = (run_folder / "stages").glob("*.json")
    stages = [StageRecord.model_validate_json(path.read_text()) for path in files]
    return sorted(stages, key=lambda stage: (stage.started, stage.task))


def progress(run_folder: Path, task: str, kind: str, **facts: object) -> None:
    """Append one line for whoever watches the run."""
    _append(run_folder / "progress.jsonl", {"task": task, "kind": kind, **facts})


def event(run_folder: Path, task: str, told: Event) -> None:
    """Append one event of a stage."""
    line: Mapping[str, object] = {
        "step": told.step, "total_steps": told.total_steps, "metrics": dict(told.metrics),
    }  # fmt: skip
    _append(run_folder / "events" / f"{task}.jsonl", line)


def cancel(run_folder: Path) -> None:
    """Ask that no further task of the run begins."""
    run_folder.mkdir(parents=True, exist_ok=True)
    (run_folder / "cancelled").touch()


def is_cancelled(run_folder: Path) -> bool:
    """Whether somebody asked the run to stop."""
    return (run_folder / "cancelled").exists()


def _append(path: Path, line: Mapping[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        handle.write(json.dumps(line) + "\n")


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    partial.write_text(text)
    partial.rename(path)
