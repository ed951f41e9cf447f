"""A command in a process of its own that gets Ctrl-C at the moment a given task has begun."""

import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from components import records
from components.records import StageRecord

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Interrupted:
    """What the terminal and the run folder held after Ctrl-C."""

    exit_code: int
    output: str
    folder: Path

    @property
    def stages(self) -> dict[str, StageRecord]:
        return {stage.task: stage for stage in records.read_stages(self.folder)}


def interrupt_in(
    task: str,
    arguments: Sequence[str],
    runs: Path,
    sends: signal.Signals = signal.SIGINT,
    after: str = "",
) -> Interrupted:
    """Run `clearstory ARGUMENTS` and interrupt it as soon as `task` says that it works, or has
    told the metric `after`."""
    known = set(runs.glob("*/progress.jsonl"))
    with subprocess.Popen(
        [sys.executable, "-m", "pipelines.cli", *arguments, "--runs", str(runs)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:  # fmt: skip
        folder = _wait_for(task, runs, known, process, after)
        process.send_signal(sends)
        output, _ = process.communicate(timeout=120)
    return Interrupted(process.returncode, output, folder)


def _wait_for(
    task: str, runs: Path, known: set[Path], process: "subprocess.Popen[str]", after: str
) -> Path:
    """The new run's folder, once its progress names the task, and the metric came if one is
    asked for."""
    assert process.stdout is not None
    lines: list[str] = []
    poll = selectors.DefaultSelector()
    poll.register(process.stdout, selectors.EVENT_READ)
    while process.poll() is None:
        if poll.select(timeout=0.05):
            lines.append(process.stdout.readline())
        for path in set(runs.glob("*/progress.jsonl")) - known:
            told = [json.loads(line) for line in path.read_text().splitlines() if line]
            events = path.parent / "events" / f"{task}.jsonl"
            ready = not after or (events.is_file() and after in events.read_text())
            if ready and any(line["task"] == task and line["kind"] == "start" for line in told):
                return path.parent
    raise AssertionError(f"the command ended before {task} began:\n{''.join(lines)}")
