"""Which library a person means: of a run, of a folder, or of the newest run that has one."""

from dataclasses import dataclass
from pathlib import Path

from components import contracts, records
from components.library import Library, open_library
from components.run_folder import RunFolder
from pipelines.earlier import chosen_run


@dataclass(frozen=True)
class Source:
    """A verified library, and the run it was found in."""

    library: Library
    run: RunFolder | None
    """None for a folder of its own: there are no chunks to show then."""

    name: str


def source(given: str, runs: Path) -> Source:
    """The library of a run's id or folder, or of a folder or `rows.parquet` of Concepts@1.

    Nothing given: the newest run that has a library. Raises ValueError for anything else.
    """
    path = Path(given)
    if not given:
        return _of_run(_newest(runs))
    if path.name == contracts.ROWS_FILE and path.is_file():
        path = path.parent
    if (path / contracts.ROWS_FILE).is_file():
        return Source(open_library(path), None, str(path))
    if (path / "stages").is_dir():
        return _of_run(path)
    if path.exists():
        raise ValueError(
            f"{path} is no library: give a run, a folder of {contracts.CONCEPTS}, or its "
            f"{contracts.ROWS_FILE}"
        )
    return _of_run(chosen_run(runs, given))


def _of_run(folder: Path) -> Source:
    run = RunFolder(folder)
    if not run.has(contracts.CONCEPTS):
        raise ValueError(
            f"the run {folder.name} has no library yet; it has {run.contents() or 'nothing'}. "
            f"Let it go on with: clearstory rerun {folder.name} --from canonicalise"
        )
    return Source(open_library(run.artifact(contracts.CONCEPTS)), run, folder.name)


def _newest(runs: Path) -> Path:
    newest = chosen_run(runs, "")  # also says how to begin where there is no run
    made = sorted(
        (path.parent for path in runs.glob("*/run.json") if (path.parent / "stages").is_dir()),
        key=lambda folder: records.read_run(folder).started,
        reverse=True,
    )
    return next((folder for folder in made if RunFolder(folder).has(contracts.CONCEPTS)), newest)
