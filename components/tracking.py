"""MLflow, and the only module that knows it: one parent run a pipeline run, one child a task.

Everything of one pipeline run carries the tag `clearstory.run_id`. Runs are made by create-or-get
on tags, so a task that starts twice is one run. Metrics go in batches; a config goes whole as a
file and, flattened, as parameters.
"""

import fcntl
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag
from mlflow.exceptions import MlflowException
from mlflow.store.model_registry import sqlalchemy_store as _registry_store  # noqa: F401
from mlflow.store.tracking import sqlalchemy_store as _tracking_store  # noqa: F401
from mlflow.tracking import MlflowClient

from components import contracts
from components.contracts import Manifest
from components.keys import StageKey, flattened
from components.records import RunRecord, StageRecord
from components.scores import numbers
from components.settings import Settings
from model.config import Config
from model.events import Event

# MLflow would load its stores at the first call; loaded here, they count as what they are: imports.

_FLUSH_SECONDS = 5.0
_METRICS_PER_BATCH, _PARAMS_PER_BATCH = 1000, 100
_PARAM_CHARS = 500
_DESCRIPTION_CHARS = 5000
_SHOWN_SUFFIXES = {".png", ".html", ".json", ".csv", ".md"}
_SHOWN_BYTES = 8_000_000
_MLFLOW_STATUS = {
    "FINISHED": "FINISHED", "REUSED": "FINISHED", "FAILED": "FAILED", "KILLED": "KILLED",
}  # fmt: skip
_RUN_TAG, _TASK_TAG = "clearstory.run_id", "clearstory.task"


def default_uri(runs: Path) -> str:
    """SQLite beside the runs: MLflow's own default is a folder it no longer accepts."""
    return f"sqlite:///{(runs / 'mlflow.db').resolve()}"


class PipelineRun:
    """The parent run in MLflow."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._client = _client(settings)

    def begin(self, parameters: Mapping[str, object], files: Mapping[str, str]) -> str:
        """Create or get the parent run; returns its MLflow id."""
        run_id = _create_or_get(
            self._client, self._settings, self._settings.run_id, {_TASK_TAG: "pipeline"}
        )
        self._client.log_batch(run_id, params=_params(parameters))
        for name, text in files.items():
            self._client.log_text(run_id, text, name)
        return run_id

    def finish(self, record: RunRecord, stages: list[StageRecord]) -> None:
        """Close the parent with its stages' times, its scores and its report."""
        now = _now_ms()
        metrics = [
            Metric(f"seconds/{stage.task}", stage.seconds, now, 0)
            for stage in stages
            if stage.seconds > 0
        ]
        overheads = [stage.overhead_seconds for stage in stages]
        metrics.append(Metric("seconds_total", record.seconds, now, 0))
        metrics.append(Metric("overhead_seconds_max", max(overheads, default=0.0), now, 0))
        for stage in stages:
            for manifest in stage.outputs.values():
                metrics += _score_metrics(manifest, now)
                if manifest.contract == contracts.REPORT.name:
                    folder = Path(manifest.location)
                    self._client.log_artifact(record.parent_run, str(folder / "report.html"))
        self._client.log_batch(record.parent_run, metrics=metrics)
        self._client.set_terminated(record.parent_run, _MLFLOW_STATUS[record.status])


def attach(settings: Settings, run_id: str, folder: str, files: Mapping[str, str]) -> None:
    """Log texts as artifacts of a run in MLflow, finished or not. ValueError where it is gone."""
    try:
        client = _client(settings)
        for name, text in files.items():
            client.log_text(run_id, text, f"{folder}/{name}")
    except MlflowException as error:
        raise ValueError(
            f"{settings.tracking_uri} takes nothing for the run {run_id}: {error.message}. Leave "
            f"it out with --no-track"
        ) from error


class StageRun:
    """The child run of one task."""

    def __init__(self, settings: Settings, task: str, stage: str) -> None:
        self._settings, self._task, self._stage = settings, task, stage
        self._client: MlflowClient | None = None
        self._run_id = ""
        self._waiting: list[Metric] = []
        self._flushed = time.monotonic()

    def begin(self, config: Config, key: StageKey, inputs: Mapping[str, list[Manifest]]) -> None:
        """Create or get the child; log config, key and inputs with their digests."""
        client = _client(self._settings)
        parent = _create_or_get(
            client, self._settings, self._settings.run_id, {_TASK_TAG: "pipeline"}
        )
        tags = {
            _TASK_TAG: self._task, "clearstory.stage": self._stage, "mlflow.parentRunId": parent,
            "clearstory.key": key.digest,
        }  # fmt: skip
        self._client = client
        self._run_id = _create_or_get(client, self._settings, self._task, tags)
        client.log_batch(self._run_id, params=_params(config.model_dump(mode="json")))
        client.log_text(self._run_id, config.model_dump_json(indent=1), "config.json")
        client.log_text(self._run_id, key.model_dump_json(indent=1), "key.json")
        datasets = [
            DatasetInput(_dataset(manifest), [InputTag("mlflow.data.context", name)])
            for name, manifests in inputs.items()
            for manifest in manifests
        ]
        if datasets:
            client.log_inputs(self._run_id, datasets)

    def hear(self, told: Event) -> None:
        """Keep the metrics of one step and send them in batches."""
        now = _now_ms()
        self._waiting += [
            Metric(name, value, now, told.step) for name, value in told.metrics.items()
        ]
        if time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self._flush()

    def finish(self, record: StageRecord) -> None:
        """Log outputs with digests, what people look at, and how it ended."""
        client = self._client
        if client is None:
            return
        self._flush()
        now = _now_ms()
        metrics = [
            Metric("seconds", record.seconds, now, 0),
            Metric("import_seconds", record.import_seconds, now, 0),
        ]
        tags = {"clearstory.status": record.status, "clearstory.why": record.why[:5000]}
        for name, manifest in record.outputs.items():
            tags[f"output.{name}"] = manifest.digest
            metrics.append(Metric(f"rows/{name}", manifest.rows, now, 0))
            size = sum(file.bytes for file in manifest.files.values())
            metrics.append(Metric(f"bytes/{name}", size, now, 0))
            metrics += _score_metrics(manifest, now)
            self._show(client, name, manifest)
            if manifest.contract == contracts.MODEL_VERSION.name:
                self._register(client, manifest, record)
        client.log_batch(
            self._run_id, metrics=metrics, tags=[RunTag(k, v) for k, v in tags.items()]
        )
        if record.error:
            client.log_text(self._run_id, record.error, "traceback.txt")
        client.set_terminated(self._run_id, _MLFLOW_STATUS[record.status])

    def _flush(self) -> None:
        assert self._client is not None, "metrics before begin"
        for first in range(0, len(self._waiting), _METRICS_PER_BATCH):
            batch = self._waiting[first : first + _METRICS_PER_BATCH]
            self._client.log_batch(self._run_id, metrics=batch)
        self._waiting, self._flushed = [], time.monotonic()

    def _show(self, client: MlflowClient, name: str, manifest: Manifest) -> None:
        """Pictures, pages and small tables become MLflow artifacts; bulk stays in the store."""
        client.log_text(self._run_id, manifest.model_dump_json(indent=1), f"{name}/manifest.json")
        for file, digest in manifest.files.items():
            path = Path(manifest.location) / file
            if path.suffix in _SHOWN_SUFFIXES and digest.bytes <= _SHOWN_BYTES:
                client.log_artifact(self._run_id, str(path), name)

    def _register(self, client: MlflowClient, manifest: Manifest, record: StageRecord) -> None:
        """Make a model version of the checkpoint, once a checkpoint digest, and move its alias."""
        version = contracts.json_file(Path(manifest.location), "version.json")
        name, digest = str(version["name"]), str(version["checkpoint_digest"])
        (checkpoint,) = record.inputs["checkpoint"]
        client.log_artifacts(self._run_id, checkpoint.location, "checkpoint")
        try:
            client.create_registered_model(name)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
        known = client.search_model_versions(f"name='{name}' and tags.checkpoint_digest='{digest}'")
        made = known[0] if known else client.create_model_version(
            name, f"runs:/{self._run_id}/checkpoint", self._run_id,
            tags={"checkpoint_digest": digest, _RUN_TAG: self._settings.run_id},
            description=_cut((Path(manifest.location) / "card.md").read_text()),
        )  # fmt: skip
        client.set_registered_model_alias(name, str(version["alias"]), made.version)


def _cut(card: str) -> str:
    """A card as a description, which MLflow limits; the whole card is an artifact of the run."""
    rest = "\n… the whole card is `model_version/card.md` of the run."
    if len(card) <= _DESCRIPTION_CHARS:
        return card
    return card[: _DESCRIPTION_CHARS - len(rest)] + rest


def close_stage(settings: Settings, record: StageRecord) -> None:
    """End the child run of a task that was killed before it could say so itself."""
    client = _client(settings)
    experiment = client.get_experiment_by_name(settings.experiment)
    assert experiment is not None, f"{settings.experiment} was made with the client"
    wanted = _one_run(settings.run_id, record.task)
    for found in client.search_runs([experiment.experiment_id], wanted):
        client.set_terminated(found.info.run_id, _MLFLOW_STATUS[record.status])


def _one_run(run_id: str, task: str) -> str:
    return f"tags.`{_RUN_TAG}` = '{run_id}' and tags.`{_TASK_TAG}` = '{task}'"


def _client(settings: Settings) -> MlflowClient:
    """A client of the run's store. The first one makes the database, behind a lock of its own."""
    with _initialising(settings):
        client = MlflowClient(
            tracking_uri=settings.tracking_uri, registry_uri=settings.tracking_uri
        )
        if client.get_experiment_by_name(settings.experiment) is None:
            root = Path(settings.runs) / "mlflow-artifacts" / settings.experiment
            local = settings.tracking_uri.startswith("sqlite:")
            client.create_experiment(
                settings.experiment,
                root.as_uri() if local else None,
                tags={"mlflow.experimentKind": "custom_model_development"},
            )
    return client


@contextmanager
def _initialising(settings: Settings) -> Iterator[None]:
    path = Path(settings.runs) / "mlflow.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _create_or_get(
    client: MlflowClient, settings: Settings, name: str, tags: Mapping[str, str]
) -> str:
    """The run with this run id and task, made if there is none; reopened if it had ended."""
    experiment = client.get_experiment_by_name(settings.experiment)
    assert experiment is not None, f"{settings.experiment} was made with the client"
    wanted = _one_run(settings.run_id, tags[_TASK_TAG])
    with _initialising(settings):
        found = client.search_runs([experiment.experiment_id], wanted, max_results=1)
        if found:
            run_id: str = found[0].info.run_id
            if found[0].info.status != "RUNNING" and tags[_TASK_TAG] != "pipeline":
                client.update_run(run_id, status="RUNNING")
            return run_id
        shared = {
            _RUN_TAG: settings.run_id, "clearstory.recipe": settings.recipe,
            "clearstory.pipeline": settings.pipeline, "mlflow.source.git.commit": settings.commit,
            "mlflow.source.name": settings.resume_command, "mlflow.source.type": "PROJECT",
        }  # fmt: skip
        if settings.origin:
            shared["clearstory.origin"] = settings.origin
        made = client.create_run(experiment.experiment_id, tags={**shared, **tags}, run_name=name)
        return str(made.info.run_id)


def _dataset(manifest: Manifest) -> Dataset:
    profile = json.dumps({"rows": manifest.rows, "files": len(manifest.files)})
    return Dataset(
        f"{manifest.contract}@{manifest.version}", manifest.digest[:32], "local",
        json.dumps({"uri": manifest.location}), profile=profile,
    )  # fmt: skip


def _score_metrics(manifest: Manifest, now: int) -> list[Metric]:
    if manifest.contract != contracts.SCORES.name:
        return []
    scores = contracts.json_file(Path(manifest.location), "scores.json")
    return [Metric(name, number, now, 0) for name, number in numbers(scores)]


def _params(values: Mapping[str, object]) -> list[Param]:
    """Flattened and short: the whole config is a file, a parameter is for the table's columns."""
    flat = list(flattened(values).items())[:_PARAMS_PER_BATCH]
    return [Param(name, text) for name, text in flat if len(text) <= _PARAM_CHARS]


def _now_ms() -> int:
    return int(time.time() * 1000)
