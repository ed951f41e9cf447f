"""Committed artifacts in folders: lease, attempt, commit, verified reuse (platform, F).

    <root>/stages/<stage>/<key>/<output>/…      committed: every file matches its manifest
    <root>/stages/<stage>/<key>/key.json        the parts of the key
    <root>/stages/<stage>/<key>/made.json       when, where and from what it was made
    <root>/attempts/<stage>-<key>-…/            being written; removed when the attempt ends
    <root>/leases/<stage>-<key>                 locked by the one process that may write that key

A reader sees the old state or the new one: an attempt becomes the artifact by one rename.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from components import contracts
from components.contracts import Contract, ContractError, Manifest
from components.keys import StageKey
from components.provenance import MADE_FILE, Provenance

_KEY_CHARS = 20


@dataclass(frozen=True)
class Hit:
    """Outputs that can be reused: each manifest verified just now."""

    outputs: Mapping[str, Manifest]


@dataclass(frozen=True)
class Miss:
    """Why a stage has to run."""

    reason: str


@dataclass(frozen=True)
class Store:
    """A store in a local folder."""

    root: Path

    def folder_of(self, key: StageKey) -> Path:
        """Where the artifacts of a key lie once they are committed."""
        return self.root / "stages" / key.stage / key.digest[:_KEY_CHARS]

    @contextmanager
    def lease(self, key: StageKey) -> Iterator[None]:
        """Hold the right to write `key`; a second process waits here until the first is done.

        The lock is the kernel's and goes with its process, so a killed run leaves none behind.
        """
        path = self.root / "leases" / f"{key.stage}-{key.digest[:_KEY_CHARS]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            try:
                yield
            finally:  # explicit: a forked child may still hold a copy of the handle
                fcntl.flock(handle, fcntl.LOCK_UN)

    @contextmanager
    def attempt(self, key: StageKey, outputs: Mapping[str, Contract]) -> Iterator[dict[str, Path]]:
        """Fresh, empty folders to write into, one an output; gone when the attempt has ended."""
        parent = self.root / "attempts"
        parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f"{key.stage}-{key.digest[:8]}-", dir=parent))
        try:
            for name in outputs:
                (folder / name).mkdir()
            yield {name: folder / name for name in outputs}
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def find(self, key: StageKey, outputs: Mapping[str, Contract]) -> Hit | Miss:
        """The committed outputs of `key` if every byte is as committed, else the reason why not."""
        folder = self.folder_of(key)
        if not folder.is_dir():
            return Miss(self._nearest(key))
        try:
            return Hit({name: _located(folder / name, c) for name, c in outputs.items()})
        except ContractError as error:
            return Miss(f"its artifact can no longer be trusted: {error}")

    def commit(
        self,
        key: StageKey,
        attempt: Mapping[str, Path],
        outputs: Mapping[str, Contract],
        made: Provenance,
    ) -> dict[str, Manifest]:
        """Verify what an attempt wrote, make it durable, and put it in place by one rename."""
        for name, contract in outputs.items():
            contracts.verify(attempt[name], contract)
        source = next(iter(attempt.values())).parent
        (source / "key.json").write_text(key.model_dump_json(indent=1))
        (source / MADE_FILE).write_text(made.model_dump_json(indent=1))
        _sync(source)
        target = self.folder_of(key)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            shutil.rmtree(target)
        source.rename(target)
        _sync_folder(target.parent)
        return {name: _located(target / name, contract) for name, contract in outputs.items()}

    def _nearest(self, key: StageKey) -> str:
        """What differs from the latest committed run of the same stage."""
        others = sorted(
            (self.root / "stages" / key.stage).glob("*/key.json"), key=lambda p: p.stat().st_mtime
        )
        if not others:
            return "it has not run before"
        differences = key.differences(StageKey.model_validate_json(others[-1].read_text()))
        shown = "; ".join(text if len(text) < 200 else text[:200] + "…" for text in differences[:3])
        return f"changed since its last run: {shown}"


def _located(folder: Path, contract: Contract) -> Manifest:
    return contracts.verify(folder, contract).model_copy(update={"location": str(folder)})


def _sync(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as handle:
                os.fsync(handle.fileno())
        else:
            _sync_folder(path)
    _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
