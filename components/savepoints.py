"""A run's whole state in a folder: committed by one rename, verified before it is trusted (§F).

    <scratch>/savepoints/step-000000120-3fa91c…/    ephemeral: the newest few
    <scratch>/kept/step-000000100-…/                for good: outlives the stage, to branch from
    <scratch>/savepoints/attempt-…/                 being written; removed when the next run begins

    manifest.json    size and SHA-256 of every file, written last before the rename
    state.json       TrainingState
    the rest         weights and optimiser, as the engine writes them (`model.engine`)

No file points at the newest one: who resumes lists the folders, takes the newest whose every byte
verifies, and says aloud which were passed over and why.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from components.manifests import MANIFEST_FILE, FileDigest, digest_of
from components.training_state import Topology, TrainingState
from model.config import Config

STATE_FILE = "state.json"
EPHEMERAL, KEPT = "savepoints", "kept"
VERSION = "1.1.0"
MOST_PASSED_OVER = 3
"""Damaged savepoints beyond these mean that the storage fails, not that a write was torn."""

_ATTEMPT = "attempt-"


class SavepointError(ValueError):
    """A folder is no savepoint, a damaged one, or another run's. The message says the way on."""


class SavepointManifest(Config):
    """What was committed."""

    version: str
    files: dict[str, FileDigest]


@dataclass(frozen=True)
class Savepoint:
    """A committed folder; `verify` says whether it is still what was committed."""

    folder: Path
    step: int

    @staticmethod
    def at(folder: Path) -> "Savepoint":
        """A committed folder, by its name."""
        return Savepoint(folder, int(folder.name.split("-")[1]))

    @property
    def state(self) -> TrainingState:
        path = self.folder / STATE_FILE
        try:
            return TrainingState.model_validate_json(path.read_text())
        except (FileNotFoundError, ValidationError) as error:
            raise SavepointError(
                f"{path} is not a training state of this version ({error}); start again without "
                f"continue_from, or with the code that wrote it"
            ) from error


@dataclass(frozen=True)
class Found:
    """The savepoint to go on from, and what was passed over on the way to it."""

    savepoint: Savepoint
    passed_over: tuple[str, ...]


def listed(scratch: Path) -> list[Savepoint]:
    """Every committed savepoint of a run, the newest first; nothing verified."""
    folders = [path for name in (EPHEMERAL, KEPT) for path in (scratch / name).glob("step-*-*")]
    return sorted(
        map(Savepoint.at, folders),
        key=lambda one: (one.step, one.folder.stat().st_mtime),
        reverse=True,
    )


def preferred(scratch: Path, fits: Topology) -> list[Savepoint]:
    """As `listed`; of several of one step (`components.conversion` makes such), this topology's
    come first."""
    return sorted(listed(scratch), key=lambda one: (-one.step, not _fits(one, fits)))


def newest(scratch: Path, fits: Topology) -> Found | None:
    """The newest savepoint whose every byte verifies; None where none was ever committed.

    Raises SavepointError where there are savepoints and none can be trusted: a run that has begun
    must not begin again unasked.
    """
    passed_over: list[str] = []
    for savepoint in preferred(scratch, fits):
        try:
            verify(savepoint.folder)
        except SavepointError as error:
            passed_over.append(str(error))
            if len(passed_over) > MOST_PASSED_OVER:
                break
            continue
        return Found(savepoint, tuple(passed_over))
    if not passed_over:
        return None
    told = "\n  ".join(passed_over)
    raise SavepointError(
        f"no savepoint of this run can be trusted any more:\n  {told}\nCheck the disk. To begin "
        f"again from the first step, remove {scratch}"
    )


def opened(folder: Path) -> Savepoint:
    """The savepoint that somebody named, every byte verified. A missing one is an error."""
    if not (folder / MANIFEST_FILE).is_file():
        raise SavepointError(
            f"continue_from names {folder}, which is no savepoint: it has no {MANIFEST_FILE}. "
            f"There {_beside(folder)}"
        )
    verify(folder)
    return Savepoint.at(folder)


def verify(folder: Path) -> SavepointManifest:
    """The manifest, after every file's size and SHA-256 was checked against it."""
    manifest = _manifest(folder)
    for name, expected in manifest.files.items():
        path = folder / name
        if not path.is_file():
            raise SavepointError(f"{path} is gone")
        found = digest_of(path) if path.stat().st_size == expected.bytes else None
        if found is None:
            raise SavepointError(
                f"{path} has {path.stat().st_size} bytes, committed were {expected.bytes}"
            )
        if found.sha256 != expected.sha256:
            raise SavepointError(
                f"{path} has SHA-256 {found.sha256[:12]}…, committed was {expected.sha256[:12]}…"
            )
    if not folder.name.endswith(_short_digest(manifest)):
        raise SavepointError(f"{folder / MANIFEST_FILE} is not the one that named its folder")
    return manifest


def refuse_other(savepoint: Savepoint, asked: Topology) -> None:
    """Raise where the optimiser's state is split otherwise than asked; reads one small file."""
    saved = savepoint.state.topology
    if saved == asked:
        return
    wanted = asked.model_dump()
    differences = ", ".join(
        f"{name} {was} (asked: {wanted[name]})"
        for name, was in saved.model_dump().items()
        if was != wanted[name]
    )
    raise SavepointError(
        f"{savepoint.folder} was saved with {differences}. Ask for what it was saved with, or "
        f"convert it, which takes seconds a gigabyte and no ranks:\n"
        f"  python -m components.conversion {savepoint.folder} --ranks {asked.ranks} "
        f"--zero-stage {asked.zero_stage} --micro-batches {asked.micro_batches}"
    )


def attempt(scratch: Path, step: int, *, permanent: bool) -> Path:
    """Where the savepoint of this step is written; the same path on every rank, nothing made."""
    return scratch / (KEPT if permanent else EPHEMERAL) / f"{_ATTEMPT}{step:09d}"


def begin(folder: Path) -> None:
    """Make the attempt's empty folder. Rank 0 alone, before a barrier."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def commit(folder: Path, state: TrainingState, written: Mapping[str, FileDigest]) -> Savepoint:
    """Turn an attempt into a savepoint: manifest, fsync, one rename. Rank 0, after a barrier.

    `written` are the digests that the writers know already; only small files are read again.
    """
    _write_durably(folder / STATE_FILE, state.model_dump_json(indent=1))
    files = dict(written)
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and name not in files:
            files[name] = digest_of(path)
        elif path.is_dir():
            _sync_folder(path)
    manifest = SavepointManifest(version=VERSION, files=dict(sorted(files.items())))
    _write_durably(folder / MANIFEST_FILE, manifest.model_dump_json(indent=1))
    _sync_folder(folder)
    step = state.standing.step
    target = folder.parent / f"step-{step:09d}-{_short_digest(manifest)}"
    shutil.rmtree(target, ignore_errors=True)  # the same bytes, committed before
    folder.rename(target)
    _sync_folder(target.parent)
    return Savepoint(target, step)


def clear_attempts(scratch: Path) -> None:
    """Remove what a killed run had begun to write."""
    for name in (EPHEMERAL, KEPT):
        for path in (scratch / name).glob(f"{_ATTEMPT}*"):
            shutil.rmtree(path)


def tidy(scratch: Path, last: int) -> list[str]:
    """Remove ephemeral savepoints older than the `last` newest that verify.

    Says what it found damaged. Nothing is removed while fewer than `last` are verified.
    """
    damaged: list[str] = []
    verified = 0
    for savepoint in listed(scratch):
        if verified >= last:
            if savepoint.folder.parent.name == EPHEMERAL:
                shutil.rmtree(savepoint.folder)
            continue
        try:
            verify(savepoint.folder)
            verified += 1
        except SavepointError as error:
            damaged.append(str(error))
    return damaged


def keep_for_good(savepoint: Savepoint, scratch: Path) -> Savepoint:
    """Move a savepoint to those that nothing removes."""
    target = scratch / KEPT / savepoint.folder.name
    if savepoint.folder != target:
        target.parent.mkdir(parents=True, exist_ok=True)
        savepoint.folder.rename(target)
        _sync_folder(target.parent)
    return Savepoint(target, savepoint.step)


def _fits(savepoint: Savepoint, topology: Topology) -> bool:
    try:
        return savepoint.state.topology == topology
    except SavepointError:
        return False


def _manifest(folder: Path) -> SavepointManifest:
    path = folder / MANIFEST_FILE
    try:
        manifest = SavepointManifest.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError) as error:
        raise SavepointError(f"{path} cannot be read: {error}") from error
    if manifest.version != VERSION:
        raise SavepointError(
            f"{folder} is a savepoint of version {manifest.version}; this code reads {VERSION}. Go "
            f"on with the commit that wrote it, or start again without it"
        )
    return manifest


def _short_digest(manifest: SavepointManifest) -> str:
    """Names the folder, so that its path says which bytes it means."""
    digests = {name: file.sha256 for name, file in manifest.files.items()}
    return hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()[:12]


def _beside(folder: Path) -> str:
    found = [one.folder.name for one in listed(folder.parent.parent)]
    return f"are {found}" if found else "is none at all"


def _write_durably(path: Path, text: str) -> None:
    with path.open("w") as handle:
        handle.write(text + "\n")
        handle.flush()
        os.fsync(handle.fileno())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
