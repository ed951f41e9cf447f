"""What `explain` and `steer` open: a checkpoint, what belongs to it, and the run it came from."""

from dataclasses import dataclass
from pathlib import Path

from components import contracts, records
from components.contracts import Contract, ContractError
from components.run_folder import RunFolder
from components.settings import Settings
from pipelines.earlier import chosen_run

_TASKS = ("midtrain", "train")
"""Whose checkpoint is meant where none is named: the one that everything later was made for."""

_CHAT_TASKS = ("finetune",)


@dataclass(frozen=True)
class Named:
    """What a person named; empty where they did not."""

    checkpoint: str
    index: Path | None
    names: Path | None
    calibration: Path | None
    runs: Path


@dataclass(frozen=True)
class Artifacts:
    """Folders to open together. `run` is None where no run of `--runs` made the checkpoint."""

    checkpoint: Path
    index: Path | None
    names: Path | None
    calibration: Path | None
    run: Path | None


def artifacts(named: Named, *, is_chat: bool) -> Artifacts:
    """The checkpoint that is named, or that of the newest run, and what was made for it.

    A name is a folder of a checkpoint, or a run by its id or folder. ValueError says what is.
    """
    tasks = _CHAT_TASKS if is_chat else _TASKS
    path = Path(named.checkpoint)
    if named.checkpoint and path.is_dir() and not (path / "stages").is_dir():
        run = _run_of(path, named.runs)
        return _with(named, path, run)
    run = path if (path / "stages").is_dir() and named.checkpoint else None
    run = run or (chosen_run(named.runs, named.checkpoint) if named.checkpoint
                  else _newest(named.runs, tasks))  # fmt: skip
    return _with(named, _checkpoint(run, tasks), run)


def settings_of(run: Path) -> Settings:
    """Settings of a run, wherever its folder was moved to."""
    from components.tracking import default_uri

    settings = Settings.model_validate_json((run / "settings.json").read_bytes())
    here = run.parent.resolve()
    if settings.runs == str(here):
        return settings
    moved = settings.tracking_uri == default_uri(Path(settings.runs))
    uri = default_uri(here) if moved else settings.tracking_uri
    return settings.model_copy(update={"runs": str(here), "tracking_uri": uri})


def _with(named: Named, checkpoint: Path, run: Path | None) -> Artifacts:
    """What a person named goes first; then what the run made for this very checkpoint."""
    if run is None:
        return Artifacts(checkpoint, named.index, named.names, named.calibration, None)
    digest = contracts.manifest_of(checkpoint).digest
    return Artifacts(
        checkpoint,
        named.index or _made_for(run, contracts.INDEX, "index.json", digest),
        named.names or _made_for(run, contracts.UNKNOWN_NAMES, "names.json", digest),
        named.calibration or _made_for(run, contracts.CALIBRATION, "calibration.json", digest),
        run,
    )


def _made_for(run: Path, contract: Contract, facts: str, digest: str) -> Path | None:
    """The run's last artifact of a contract, if it was made for the checkpoint."""
    for folder in reversed(_outputs(run, contract)):
        if (folder / facts).is_file():
            told = contracts.json_file(folder, facts)
            if told.get("checkpoint_digest") == digest:
                return folder
    return None


def _checkpoint(run: Path, tasks: tuple[str, ...]) -> Path:
    for task in tasks:
        found = _outputs(run, contracts.CHECKPOINT, task)
        if found:
            return found[-1]
    raise ContractError(
        f"the run {run.name} has no checkpoint of {' or '.join(tasks)}; it has "
        f"{RunFolder(run).contents() or 'nothing'}. Let it go on with: clearstory rerun "
        f"{run.name} --from {tasks[0]}"
    )


def _newest(runs: Path, tasks: tuple[str, ...]) -> Path:
    newest = chosen_run(runs, "")  # also says how to begin where there is no run
    return next((run for run in _runs(runs) if any(
        _outputs(run, contracts.CHECKPOINT, task) for task in tasks)), newest)  # fmt: skip


def _run_of(checkpoint: Path, runs: Path) -> Path | None:
    """The newest run that has this checkpoint among its outputs."""
    if not (checkpoint / "manifest.json").is_file():
        return None
    digest = contracts.manifest_of(checkpoint).digest
    for run in _runs(runs):
        for stage in records.read_stages(run):
            if any(one.digest == digest for one in stage.outputs.values()):
                return run
    return None


def _runs(runs: Path) -> list[Path]:
    """Runs, the newest first."""
    made = [path.parent for path in runs.glob("*/run.json") if (path.parent / "stages").is_dir()]
    return sorted(made, key=lambda run: records.read_run(run).started, reverse=True)


def _outputs(run: Path, contract: Contract, task: str = "") -> list[Path]:
    return [
        Path(manifest.location)
        for stage in records.read_stages(run)
        for manifest in stage.outputs.values()
        if manifest.contract == contract.name and task in ("", stage.task)
    ]


def parent_run(run: Path) -> str:
    """The run's id in MLflow; empty where it was never tracked."""
    if not (run / "settings.json").is_file():
        return ""
    return records.read_run(run).parent_run
