"""SIGKILL of the command while ranks train: nothing trains on, and the same command goes on."""

import json
import signal
import subprocess
import sys

import psutil
import pytest

from tests.pipelines.interrupting import ROOT, interrupt_in

SAVING = [
    *("--set", "training.training.saving.every_steps=2"),
    *(
        "--set",
        "training.training.tell_seconds=0.01",
    ),  # told at every step, so the kill comes early
]


def ranks_of(runs):
    """Processes that belong to a run in this folder."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if str(runs) in " ".join(process.info["cmdline"] or []):
            found.append(process)
    return found


@pytest.mark.chaos
def test_a_command_killed_outright_leaves_no_ranks_and_goes_on_when_run_again(tmp_path):
    runs = tmp_path / "runs"
    killed = interrupt_in(
        "train", ["run", "debug", *SAVING], runs, signal.SIGKILL, after="tokens_per_second"
    )
    assert killed.exit_code == -signal.SIGKILL
    _, alive = psutil.wait_procs(ranks_of(runs), timeout=60)
    assert not alive
    (scratch,) = (runs / "store" / "scratch").glob("train-*")
    assert list((scratch / "savepoints").glob("step-*"))
    again = subprocess.run(
        [sys.executable, "-m", "pipelines.cli", "run", "debug", *SAVING, "--runs", str(runs)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "train: goes on after step" in again.stdout
    assert not list((runs / "store" / "scratch").glob("train-*"))
    (latest,) = set(runs.glob("*/events/train.jsonl")) - {killed.folder / "events" / "train.jsonl"}
    told = [json.loads(line)["metrics"] for line in latest.read_text().splitlines()]
    assert max(metrics.get("restarts", 0.0) for metrics in told) == 1.0
