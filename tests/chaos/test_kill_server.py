"""A server is killed while it keeps explanations; the next finds every one it had told of."""

import json
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.components.explained_run import write_run

pytestmark = pytest.mark.chaos
_N_KILLS = 5


def test_no_explanation_that_was_told_of_is_lost_or_torn(tmp_path: Path) -> None:
    checkpoint = write_run(tmp_path / "run").checkpoint
    kept, draw = tmp_path / "kept", random.Random(0)
    told: dict[str, bytes] = {}
    for _ in range(_N_KILLS):
        _explain_until_killed(checkpoint, kept, told, draw.uniform(0.05, 0.6))
    with _Server(checkpoint, kept) as server, httpx.Client(base_url=server.address) as client:
        assert len(told) > _N_KILLS
        for place, answer in told.items():
            assert client.get(place).content == answer
            page = client.get(place.replace("answer.json", "page.html"))
            assert page.text.rstrip().endswith("</html>")
        assert list(kept.glob(".partial-*")) == []
        for folder in kept.glob("[0-9a-f]*"):
            json.loads((folder / "answer.json").read_bytes())


def _explain_until_killed(
    checkpoint: Path, kept: Path, told: dict[str, bytes], seconds: float
) -> None:
    with _Server(checkpoint, kept) as server, httpx.Client(base_url=server.address) as client:
        killer = threading.Timer(seconds, server.kill)
        for number in range(10_000):
            body = {
                "request": {"prompt": f"the rain {len(told)} {number}", "sampling": {"n_new": 6}},
                "options": {"input_targets": 0, "draws": 5},
            }
            try:
                answer = client.post("/explain", json=body)
            except httpx.TransportError:
                break
            told[answer.headers["content-location"]] = answer.content
            if number == 0:
                killer.start()
        killer.join()


class _Server:
    """`clearstory serve` in a process of its own."""

    def __init__(self, checkpoint: Path, kept: Path) -> None:
        command = [
            sys.executable, "-m", "pipelines.cli", "serve", "--checkpoint", str(checkpoint),
            "--port", "0", "--keep", str(kept),
        ]  # fmt: skip
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert "http://" in line, line
        self.address = line.split()[2]

    def __enter__(self) -> "_Server":
        return self

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
