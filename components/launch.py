"""Starting ranks: `torchrun` here, on this machine (Kubernetes follows with the platform).

    run("components.optimisation", job, ranks, on_event)

The ranks are other processes: progress comes back through a file of JSON lines, a failure through
a file with its traceback. What a worker prints is kept and shown only if it fails. Ranks end when
the process that started them is gone.

Exit codes, of the ranks and of `clearstory run`:

    0     finished
    1     failed; the message is the first failed rank's own
    2     what was asked for cannot be (a name, a config, an input)
    75    asked to stop (SIGTERM to the ranks): run it again, it goes on from its last savepoint
    76    loss or gradient not finite too often in a row: the last good savepoint is kept for good
    130   interrupted (Ctrl-C, SIGTERM to the command): run it again
    137   killed, mostly for memory: lower batch_sequences, raise micro_batches or the ZeRO stage
"""

import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from pydantic import PositiveInt

from components import lifeline
from model.config import Config
from model.endings import EndedError
from model.events import Event, Events

EVENTS_FILE = "events.jsonl"
OUTPUT_FILE = "output.txt"
FAILURE_FILE = "failure-{rank}.txt"
ENDED_FILE = "ended.json"
POLL_SECONDS = 0.1
SHOWN_CHARS = 4000
_KILLED = 137


class RanksConfig(Config):
    """How many processes share one optimisation."""

    ranks: PositiveInt = 1
    threads: PositiveInt = 2
    """Threads of each rank. Ranks × threads beyond the cores slow everything down."""


class RankError(RuntimeError):
    """A rank failed; the message ends with its own traceback, or says why it meant to end."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def run(module: str, job: Path, config: RanksConfig, events: Events) -> None:
    """Run `python -m module job` on every rank and wait. Files appear beside the job."""
    folder = job.parent
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
        *("--nproc-per-node", str(config.ranks), "-m", module, str(job)),
    ]
    with (folder / OUTPUT_FILE).open("w") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=environment(config)
        )
        try:
            _follow(process, folder / EVENTS_FILE, events)
        except KeyboardInterrupt as error:
            _stop(process)
            raise KeyboardInterrupt(_ended(folder)[0] or str(error)) from error
        finally:
            _stop(process)
    if process.returncode:
        message, code = _ended(folder)
        raise RankError(message, code) if message else _failure(folder, process.returncode)


@contextmanager
def reporting(folder: Path, rank: int) -> Iterator[Events]:
    """The other end, inside a rank: events into the file, a failure's traceback beside it.

    An end that was meant leaves its message and becomes the exit code.
    """
    lifeline.follow(lifeline.LAUNCHER_PID, lifeline.end_at_once)
    with (folder / EVENTS_FILE).open("a") if rank == 0 else open(os.devnull, "w") as lines:

        def write(event: Event) -> None:
            lines.write(json.dumps(asdict(event)) + "\n")
            lines.flush()

        try:
            yield write
        except EndedError as error:
            if rank == 0:
                ended = {"message": str(error), "exit_code": error.exit_code}
                (folder / ENDED_FILE).write_text(json.dumps(ended))
            raise SystemExit(error.exit_code) from error
        except BaseException:
            (folder / FAILURE_FILE.format(rank=rank)).write_text(traceback.format_exc())
            raise


def environment(config: RanksConfig) -> Mapping[str, str]:
    """What a rank must find: threads that do not fight, DeepSpeed's operator built once."""
    return {
        **os.environ,
        "OMP_NUM_THREADS": str(config.threads),
        "OMP_WAIT_POLICY": "PASSIVE",
        lifeline.LAUNCHER_PID: str(os.getpid()),
        "TORCH_EXTENSIONS_DIR": os.environ.get(
            "TORCH_EXTENSIONS_DIR", str(Path(sys.prefix) / "torch_extensions")
        ),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }


def _follow(process: "subprocess.Popen[bytes]", path: Path, events: Events) -> None:
    """Pass events on until the process has ended and every line was read."""
    read = 0
    while True:
        ended = process.poll() is not None
        text = path.read_text() if path.is_file() else ""
        lines = text[read:].splitlines(keepends=True)
        for line in lines:
            if line.endswith("\n"):
                read += len(line)
                events(Event(**json.loads(line)))
        if ended:
            return
        time.sleep(POLL_SECONDS)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """End the ranks if they still run: an interrupt or a failed listener came first."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _ended(folder: Path) -> tuple[str, int]:
    """Message and exit code of an end that was meant; an empty message where there was none."""
    path = folder / ENDED_FILE
    if not path.is_file():
        return "", 1
    ended = json.loads(path.read_text())
    return str(ended["message"]), int(ended["exit_code"])


def _failure(folder: Path, code: int) -> RankError:
    """The first rank's own traceback; without one, what the ranks printed last."""
    failures = sorted(folder.glob(FAILURE_FILE.format(rank="*")), key=os.path.getmtime)
    if failures:
        rank = failures[0].stem.removeprefix("failure-")
        told = failures[0].read_text()[-SHOWN_CHARS:]
        return RankError(f"rank {rank} failed (exit {code}):\n{told}")
    output = (folder / OUTPUT_FILE).read_text()
    return RankError(
        f"the ranks ended with exit {code} and no traceback; killed for memory? Lower "
        f"batch_sequences or raise micro_batches. Their output ended:\n{output[-SHOWN_CHARS:]}",
        _KILLED if "SIGKILL" in output else 1,
    )
