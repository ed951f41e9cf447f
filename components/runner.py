"""What wraps every stage: key -> lease -> gates -> reuse or run -> verify -> commit -> track.

`run_stage` is the only caller of `store.commit` and of `components.tracking`. A stage is a plain
function of input folders, output folders and a config; all that surrounds it is here.
"""

import atexit
import contextlib
import gc
import inspect
import os
import platform
import re
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import psutil

from components import contracts, keys, lifeline, records, scratch, tracking
from components.contracts import Contract, ContractError, Manifest
from components.launch import RankError
from components.provenance import Provenance
from components.records import StageRecord
from components.settings import Settings
from components.store import Hit, Store
from model.config import Config
from model.endings import StoppedError
from model.events import Event


class GateError(ValueError):
    """A gate found data that breaks its contract. The message names rules, values and rows."""


class Artifact(Protocol):
    """What KFP hands a component: `path` is where the body, our manifest, lies or shall lie."""

    path: str
    schema_title: str


Inputs = Mapping[str, Artifact | Sequence[Artifact]]


def run_stage(
    function: Callable[..., object],
    inputs: Inputs,
    gates: Sequence[Artifact],
    output: Artifact | Mapping[str, Artifact],
    config: Config,
    settings: str,
    task: str = "",
) -> None:
    """Run `function(*inputs, *outputs, config)` once for all: its outputs are committed or reused.

    `task` names this use of the stage in the run's record: the function's name where it is empty.
    Raises GateError before any work where a gate report did not pass or speaks of other data, and
    whatever the stage raises, after the failure was recorded.
    """
    run = _Run.of(function, inputs, output, config, Settings.model_validate_json(settings), task)
    atexit.register(gc.freeze)  # or the interpreter ends by looking at all that was imported: 1.2 s
    lifeline.interrupt_once()
    lifeline.follow(lifeline.RUN_PID, lifeline.ask_to_stop)
    if records.is_cancelled(run.settings.run_folder):
        raise SystemExit(f"{run.name} did not begin: its run was stopped or failed before")
    try:
        run.begin()
        run.gates = _passed(gates, run.inputs)
        with run.store.lease(run.key):
            found = run.store.find(run.key, run.contracts)
            if isinstance(found, Hit) and run.name not in run.settings.force:
                run.finish("REUSED", "every digest verified", found.outputs)
            else:
                forced = "it was asked to run again"
                why = forced if isinstance(found, Hit) else found.reason
                run.execute(function, why)
        _hand_over(run.output_artifacts, run.record.outputs)
        _stop_at_failed_gate(run.record.outputs)
    except BaseException as error:
        run.fail(error)
        raise


@dataclass
class _Run:
    """One execution of one stage."""

    name: str
    settings: Settings
    config: Config
    store: Store
    key: keys.StageKey
    inputs: dict[str, list[Manifest]]
    is_list: dict[str, bool]
    contracts: dict[str, Contract]
    output_artifacts: dict[str, Artifact]
    record: StageRecord
    tracked: tracking.StageRun
    gates: dict[str, Manifest]
    started: float
    stage_seconds: float = 0.0

    @staticmethod
    def of(
        function: Callable[..., object],
        inputs: Inputs,
        output: Artifact | Mapping[str, Artifact],
        config: Config,
        settings: Settings,
        task: str,
    ) -> "_Run":
        started = time.monotonic()
        stage, name = function.__name__, task or function.__name__
        lists = {
            key: value if isinstance(value, Sequence) else [value] for key, value in inputs.items()
        }
        manifests = {key: [manifest_at(item) for item in items] for key, items in lists.items()}
        outputs = dict(output) if isinstance(output, Mapping) else {_name_of(output): output}
        out_contracts = {key: contracts.ALL[_title(item)] for key, item in outputs.items()}
        key = keys.key_of(
            stage, inspect.unwrap(function).__module__, config,
            {key: [item.digest for item in items] for key, items in manifests.items()},
            {key: str(contract) for key, contract in out_contracts.items()},
        )  # fmt: skip
        record = StageRecord(
            task=name, stage=stage, status="RUNNING", started=datetime.now(UTC).isoformat(),
            key=key.digest, why="", config=config.model_dump(mode="json"), inputs=manifests,
            gates={}, outputs={}, pid=os.getpid(),
            import_seconds=time.time() - psutil.Process().create_time(),
        )  # fmt: skip
        return _Run(
            name=name, settings=settings, config=config, store=Store(settings.store_root), key=key,
            inputs=manifests, is_list={k: isinstance(v, Sequence) for k, v in inputs.items()},
            contracts=out_contracts, output_artifacts=outputs, record=record,
            tracked=tracking.StageRun(settings, name, stage), gates={}, started=started,
        )  # fmt: skip

    def begin(self) -> None:
        """Say that the task has begun, on disk and in MLflow."""
        self._update()
        self.tracked.begin(self.config, self.key, self.inputs)

    def execute(self, function: Callable[..., object], why: str) -> None:
        """Run the stage in an attempt folder and commit what it wrote."""
        records.progress(self.settings.run_folder, self.name, "start", why=why)
        self._update(why=why)
        folders = {name: self._input_folders(name) for name in self.inputs}
        with (
            self.store.attempt(self.key, self.contracts) as attempt,
            self._wanted(function) as wanted,
        ):
            arguments = [*folders.values(), *attempt.values(), self.config]
            began = time.monotonic()
            function(*arguments, **wanted)
            self.stage_seconds = time.monotonic() - began
            outputs = self.store.commit(self.key, attempt, self.contracts, self._provenance())
        self.finish("FINISHED", why, outputs)

    @contextlib.contextmanager
    def _wanted(self, function: Callable[..., object]) -> Iterator[dict[str, object]]:
        """What a stage asks for by name besides its inputs, outputs and config."""
        names = _parameters(function)
        heard: dict[str, object] = {"events": self.hear} if "events" in names else {}
        if "scratch" not in names:
            yield heard
            return
        for left in scratch.abandoned(self.store.root, self.key):
            text = f"a killed attempt at another key left {left}; this one does not go on from it"
            records.progress(self.settings.run_folder, self.name, "message", text=text)
        with scratch.lent(self.store.root, self.key) as folder:
            yield {**heard, "scratch": folder}

    def hear(self, told: Event) -> None:
        """Spool one event to disk and to MLflow; what it says to people, to the terminal."""
        if told.message:
            records.progress(self.settings.run_folder, self.name, "message", text=told.message)
        if not told.metrics:
            return
        records.event(self.settings.run_folder, self.name, told)
        self.tracked.hear(told)

    def finish(self, status: records.Status, why: str, outputs: Mapping[str, Manifest]) -> None:
        """Record success; MLflow first, so that the record's overhead includes it."""
        seconds = self.stage_seconds
        self._update(
            status=status, why=why, outputs=dict(outputs), gates=self.gates, seconds=seconds
        )
        self.tracked.finish(self.record)
        self._update(overhead_seconds=time.monotonic() - self.started - seconds)
        records.progress(
            self.settings.run_folder, self.name, "end", status=status, seconds=self.stage_seconds,
            rows={name: manifest.rows for name, manifest in outputs.items()},
        )  # fmt: skip

    def fail(self, error: BaseException) -> None:
        """Record the failure with its traceback, and let no further task of the run begin."""
        records.cancel(self.settings.run_folder)
        killed = isinstance(error, KeyboardInterrupt)
        text = "".join(traceback.format_exception(error))
        seconds = time.monotonic() - self.started
        code = error.exit_code if isinstance(error, RankError) else 1
        status: records.Status = "KILLED" if killed or code == StoppedError.exit_code else "FAILED"
        self._update(status=status, error=text, exit_code=code, seconds=seconds, gates=self.gates)
        records.progress(
            self.settings.run_folder, self.name, "end", status=status, seconds=seconds,
            error=f"{type(error).__name__}: {error}",
        )  # fmt: skip
        self.tracked.finish(self.record)

    def _provenance(self) -> Provenance:
        read = [*self.gates.values(), *(item for items in self.inputs.values() for item in items)]
        return Provenance(
            task=self.name, run_id=self.settings.run_id, commit=self.settings.commit,
            host=platform.node(), started=self.record.started, seconds=self.stage_seconds,
            inputs=tuple(manifest.location for manifest in read),
        )  # fmt: skip

    def _update(self, **changes: object) -> None:
        self.record = self.record.model_copy(update=changes)
        records.write_stage(self.record, self.settings.run_folder)

    def _input_folders(self, name: str) -> Path | list[Path]:
        folders = [self.store.opened(manifest) for manifest in self.inputs[name]]
        return folders if self.is_list[name] else folders[0]


def manifest_at(artifact: Artifact) -> Manifest:
    """The manifest that an input artifact's body holds."""
    path = Path(artifact.path)
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValueError) as error:
        raise ContractError(
            f"{path} is not a manifest of ours ({error}); only manifests travel between tasks."
        ) from error


def _passed(gates: Sequence[Artifact], inputs: Mapping[str, list[Manifest]]) -> dict[str, Manifest]:
    """The gate reports, if each passed and speaks of the very bytes this stage is about to read."""
    digests = {manifest.digest for manifests in inputs.values() for manifest in manifests}
    accepted = {}
    for artifact in gates:
        manifest = manifest_at(artifact)
        folder = Path(manifest.location)
        contracts.verify(folder, contracts.GATE_REPORT)
        report = contracts.json_file(folder, "report.json")
        if report["digest"] not in digests:
            raise GateError(
                f"The gate report {folder} speaks of {report['contract']} with digest "
                f"{str(report['digest'])[:12]}…, but none of the inputs has it. The data changed "
                f"after it was checked: run the gate again."
            )
        if not report["passed"]:
            raise GateError(_failures(report))
        accepted[str(report["contract"])] = manifest
    return accepted


def _hand_over(artifacts: Mapping[str, Artifact], outputs: Mapping[str, Manifest]) -> None:
    """Give KFP the manifests, where it wants the bodies of the artifacts."""
    for name, artifact in artifacts.items():
        path = Path(artifact.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(outputs[name].model_dump_json(indent=1))


def _stop_at_failed_gate(outputs: Mapping[str, Manifest]) -> None:
    for manifest in outputs.values():
        if manifest.contract == contracts.GATE_REPORT.name:
            report = contracts.json_file(Path(manifest.location), "report.json")
            if not report["passed"]:
                raise GateError(_failures(report))


def _failures(report: Mapping[str, object]) -> str:
    failures = report["failures"]
    lines = [
        f"  {found['rule']} on {found['column']}: found {found['observed']}, rows {found['rows']}"
        for found in (failures if isinstance(failures, list) else [])
    ]
    return "\n".join([f"{report['contract']} did not pass its gate:", *lines])


def _parameters(function: Callable[..., object]) -> set[str]:
    return set(inspect.signature(function).parameters)


def _title(artifact: Artifact) -> str:
    return artifact.schema_title.removeprefix("system.")


def _name_of(artifact: Artifact) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", _title(artifact)).lower()
