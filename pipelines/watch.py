"""The terminal while a run goes on: one line a finished task, one live line for the current one."""

import json
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

_POLL_SECONDS = 0.3
_LIVE_SECONDS = 15.0
_SHOWN = (
    "recent_nll_nats", "valid_nll_nats", "tokens_per_second", "goodput", "chunks_per_second",
    "cost", "cost_at_end",
)  # fmt: skip


class Watcher:
    """Follows `progress.jsonl` and the events of the task that runs, in a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._read = 0
        self._began: dict[str, float] = {}
        self._shown = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._stop.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._stop.wait(_POLL_SECONDS):
            self._show_new()
            self._show_live()
        self._show_new()

    def _show_new(self) -> None:
        path = self._folder / "progress.jsonl"
        if not path.exists():
            return
        with path.open() as handle:
            handle.seek(self._read)
            text = handle.read()
        whole, _, _ = text.rpartition("\n")
        if not whole:
            return
        self._read += len(whole.encode()) + 1
        for line in whole.splitlines():
            self._show(json.loads(line))

    def _show(self, told: Mapping[str, object]) -> None:
        task = str(told["task"])
        if told["kind"] == "start":
            self._began[task] = self._shown = time.monotonic()
            return
        if told["kind"] == "message":
            _say(f"    {task}: {told['text']}")
            return
        self._began.pop(task, None)
        status, seconds = str(told["status"]).lower(), _seconds(told["seconds"])
        _say(f"  {task:<24} {status:<9} {seconds}  {_what(told)}")

    def _show_live(self) -> None:
        """Rate, time left and loss of a long task, now and then."""
        if not self._began or time.monotonic() - self._shown < _LIVE_SECONDS:
            return
        self._shown = time.monotonic()
        for task, began in self._began.items():
            path = self._folder / "events" / f"{task}.jsonl"
            if path.exists() and (lines := path.read_text().splitlines()):
                _say(f"    {task}: {_progress(json.loads(lines[-1]), time.monotonic() - began)}")


def _progress(event: Mapping[str, object], elapsed: float) -> str:
    step, total = int(str(event["step"])), int(str(event["total_steps"]))
    metrics = event["metrics"]
    shown = [
        f"{name} {float(value):.4g}"
        for name, value in (metrics.items() if isinstance(metrics, Mapping) else [])
        if name in _SHOWN
    ]
    if total <= 0 or step <= 0:
        return ", ".join([f"{step} done", *shown])
    left = elapsed * (total - step) / step
    return ", ".join(
        [f"{step} of {total}", f"{step / elapsed:.1f}/s", f"{left:.0f} s left", *shown]
    )


def _what(told: Mapping[str, object]) -> str:
    if error := told.get("error"):
        return str(error).splitlines()[0]
    rows = told.get("rows")
    counts = rows.items() if isinstance(rows, Mapping) else []
    return ", ".join(f"{count:,} {name}" if count else str(name) for name, count in counts)


def _seconds(value: object) -> str:
    return f"{float(str(value)):7.1f} s"


def _say(line: str) -> None:
    print(line, file=sys.__stdout__, flush=True)
