"""A DAG on this machine: kfp.local runs it, we watch it, and we finish what kfp leaves open.

kfp.local skips exit handlers when a task fails, says only "Inner task failed", and shows every line
of every task. Here its output goes to `kfp.log`, a line a task goes to the terminal, and whatever
happens the run and its MLflow parent are closed, children are stopped and the way on is printed.
"""

import builtins
import contextlib
import importlib.metadata
import logging
import os
import platform
import secrets
import signal
import time
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import psutil
from kfp import local
from kfp.dsl.graph_component import GraphComponent

from components import lifeline, records, tracking
from components.records import RunRecord, StageRecord
from components.settings import Settings
from pipelines import compile as compiler
from pipelines.recipe import Recipe
from pipelines.watch import Watcher

_GRACE_SECONDS = 15


class RunFailedError(RuntimeError):
    """A task of the run failed. The message is the task's own, with the way on."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def new_run_id(recipe: str) -> str:
    """Recipe, UTC time and four random characters: unique, and sorts by time."""
    return f"{recipe}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def run(dag: GraphComponent, recipe: Recipe, settings: Settings) -> RunRecord:
    """Run a DAG to its end. Raises RunFailedError, or KeyboardInterrupt, after all is closed."""
    folder = settings.run_folder
    folder.mkdir(parents=True)
    ir = folder / "pipeline.yaml"
    compiler.write_ir(dag, ir)
    (folder / "recipe.json").write_text(recipe.model_dump_json(indent=1))
    (folder / "settings.json").write_text(settings.model_dump_json(indent=1))
    parent = tracking.PipelineRun(settings)
    files = {
        "recipe.json": recipe.model_dump_json(indent=1),
        "pipeline.yaml": ir.read_text(),
        "environment.txt": _environment_text(),
    }
    run_id = parent.begin({"recipe": recipe.name, "seed": recipe.seed}, files)
    record = RunRecord(
        run_id=settings.run_id, recipe=recipe.name, status="RUNNING", commit=settings.commit,
        started=datetime.now(UTC).isoformat(), seed=recipe.seed, origin=settings.origin,
        tracking_uri=settings.tracking_uri, parent_run=run_id, pid=os.getpid(),
    )  # fmt: skip
    records.write_run(record, folder)
    began = time.monotonic()
    status: records.Status = "FAILED"
    try:
        with Watcher(folder), _interruptible(folder):
            _through_kfp(dag, settings)
        status = "FINISHED"
    except KeyboardInterrupt as error:
        status = "KILLED"
        raise KeyboardInterrupt(_cause(records.read_stages(folder), folder)) from error
    except RuntimeError as error:
        stages = records.read_stages(folder)
        codes = [stage.exit_code for stage in stages if stage.exit_code]
        raise RunFailedError(_cause(stages, folder), codes[0] if codes else 1) from error
    finally:
        _stop_children()
        _close_open_stages(folder)
        seconds = time.monotonic() - began
        record = record.model_copy(update={"status": status, "seconds": seconds})
        records.write_run(record, folder)
        parent.finish(record, records.read_stages(folder))
    return record


def _environment_text() -> str:
    """Python and every installed distribution, as `pip freeze` would write them."""
    found = {f"{each.name}=={each.version}" for each in importlib.metadata.distributions()}
    return "\n".join([f"# Python {platform.python_version()}", *sorted(found)]) + "\n"


def _through_kfp(dag: GraphComponent, settings: Settings) -> None:
    folder = settings.run_folder
    local.init(local.SubprocessRunner(use_venv=False), pipeline_root=str(folder / "kfp"))
    log = (folder / "kfp.log").open("w", buffering=1)
    with (
        log, _same_output(), contextlib.redirect_stdout(log), _environment(settings),
        warnings.catch_warnings(),
    ):  # fmt: skip
        # Requests and limits are for clusters; kfp says of every task that they do nothing here.
        warnings.filterwarnings("ignore", message="Task .* have no effect in the current local")
        dag(settings=settings.model_dump_json())


@contextlib.contextmanager
def _same_output() -> Iterator[None]:
    """Logging and `print` as they were.

    kfp changes both while a task runs, and its loops run tasks in threads: the last to end leaves
    behind what another had set, handlers on a closed log and a `print` that indents.
    """
    logger, printing = logging.getLogger(), builtins.print
    handlers, level = logger.handlers[:], logger.level
    try:
        yield
    finally:
        logger.handlers[:] = handlers
        logger.setLevel(level)
        builtins.print = printing


@contextlib.contextmanager
def _environment(settings: Settings) -> Iterator[None]:
    """What tasks inherit: this code, the caches, and threads that do not spin while they wait."""
    root = str(Path(__file__).resolve().parent.parent)
    wanted = {
        "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")])),
        "CLEARSTORY_CACHE": settings.cache, lifeline.RUN_PID: str(os.getpid()),
        "OMP_WAIT_POLICY": "PASSIVE",
        "HF_HUB_OFFLINE": os.environ.get("HF_HUB_OFFLINE", "1"), "MPLBACKEND": "Agg",
        "MLFLOW_DISABLE_TELEMETRY": "true", "GX_ANALYTICS_ENABLED": "false",
        "PYTHONDONTWRITEBYTECODE": os.environ.get("PYTHONDONTWRITEBYTECODE", ""),
    }  # fmt: skip
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _interruptible(folder: Path) -> Iterator[None]:
    """Ctrl-C and SIGTERM stop the tasks too, and no further task begins."""

    def stop(signum: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        records.cancel(folder)
        _stop_children()
        raise KeyboardInterrupt

    before = {name: signal.signal(name, stop) for name in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def _stop_children() -> None:
    """End every process that the run started: asked first, then made to."""
    children = psutil.Process().children(recursive=True)
    for child in children:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.terminate()
    _, alive = psutil.wait_procs(children, timeout=_GRACE_SECONDS)
    for child in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()


def _close_open_stages(folder: Path) -> None:
    """A task that was killed outright could not say so: its record is closed here."""
    settings = Settings.model_validate_json((folder / "settings.json").read_text())
    for stage in records.read_stages(folder):
        if stage.status == "RUNNING":
            closed = stage.model_copy(update={"status": "KILLED", "error": "its process is gone"})
            records.write_stage(closed, folder)
            tracking.close_stage(settings, closed)


def _cause(stages: list[StageRecord], folder: Path) -> str:
    failed = [stage for stage in stages if stage.status in ("FAILED", "KILLED")]
    if not failed:
        return f"A task could not start; its output is the end of {folder / 'kfp.log'}."
    last = failed[0].error.strip().splitlines() or ["it ended without a word"]
    message = "\n".join(last[_first_line_of_message(last) :])
    return f"{failed[0].task} {failed[0].status.lower()}: {message}"


def _first_line_of_message(lines: list[str]) -> int:
    """Where the exception's own text begins: after the last line of a traceback."""
    indented = [row for row, line in enumerate(lines) if line.startswith("  File ")]
    if not indented:
        return 0
    rest = range(indented[-1] + 1, len(lines))
    return next((row for row in rest if not lines[row].startswith(" ")), 0)
