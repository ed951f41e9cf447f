"""A run in a process of its own that gets Ctrl-C at the moment a given task has begun."""

import json
import os
import selectors
import signal
import subprocess
import sys
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


def run_until(task: str, runs: Path) -> Interrupted:
    """Run `debug` in `runs` and interrupt it as soon as `task` says that it works."""
    command = [sys.executable, "-m", "pipelines.cli", "run", "debug", "--runs", str(runs)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=environment,
    ) as process:  # fmt: skip
        folder = _wait_for(task, runs, process)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=120)
    return Interrupted(process.returncode, output, folder)


def _wait_for(task: str, runs: Path, process: "subprocess.Popen[str]") -> Path:
    """The run's folder, once its progress names the task; blocks on the process's own clock."""
    poll = selectors.DefaultSelector()
    known = set(runs.glob("*/progress.jsonl"))
    while process.poll() is None:
        poll.select(timeout=0.05)
        for path in set(runs.glob("*/progress.jsonl")) - known:
            told = [json.loads(line) for line in path.read_text().splitlines() if line]
            if any(line["task"] == task and line["kind"] == "start" for line in told):
                return path.parent
    raise AssertionError(f"the run ended before {task} began")
