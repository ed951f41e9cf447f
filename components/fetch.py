"""The cache of pinned packages: filled once with a network, read by stages without one.

    archives/NAME-VERSION.whl      as downloaded; its SHA-256 was checked before it was opened
    packages/NAME-VERSION/         the members that are needed, and `verified.json`, written last

Opening a package compares the recorded digest with the pinned one and every file's size with the
recorded size, which costs no reading.
"""

import difflib
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from components.archives import MARKER_FILE, Watch, unpack, verified_archive
from components.archives import FetchError as FetchError
from components.packages import PACKAGES, Package


class NotFetchedError(FetchError):
    """The cache lacks packages that a stage needs."""


def package(name: str) -> Path:
    """The folder of a fetched package's members. Raises where the cache does not hold it."""
    need([name])
    return _folder(_pinned(name))


def need(names: Iterable[str]) -> None:
    """Raise unless the cache holds all of these packages, naming every one that it lacks."""
    lacking = [wanted for wanted in map(_pinned, names) if not _is_complete(wanted)]
    if lacking:
        listed = "\n".join(
            f"  {wanted} ({wanted.n_bytes / 1e6:.1f} MB), {wanted.purpose}" for wanted in lacking
        )
        raise NotFetchedError(
            f"the cache {cache_folder()} lacks {len(lacking)} package(s):\n{listed}\n"
            f"Run `clearstory fetch RECIPE` once with a network; CLEARSTORY_CACHE names the folder."
        )


def fetch(names: Iterable[str], watch: Watch) -> None:
    """Download and unpack whichever of these packages the cache lacks."""
    for wanted in [_pinned(name) for name in names]:
        if not _is_complete(wanted):
            archive = verified_archive(wanted, cache_folder() / "archives", watch)
            unpack(wanted, archive, _folder(wanted))
        watch(wanted, wanted.n_bytes)


def fetch_all(names: Iterable[str]) -> None:
    """`fetch` as a person watches it: a bar per package on a terminal, plain lines elsewhere."""
    if sys.stderr.isatty():
        _fetch_with_bars(names)
    else:
        _fetch_with_lines(names)


def cache_folder() -> Path:
    """Where fetched packages and cached answers lie, outside of any repository."""
    named = os.environ.get("CLEARSTORY_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clearstory"


def _pinned(name: str) -> Package:
    if name not in PACKAGES:
        near = difflib.get_close_matches(name, PACKAGES, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; they are {', '.join(PACKAGES)}"
        raise FetchError(f"no package {name!r} is pinned in components/packages.py{hint}")
    return PACKAGES[name]


def _folder(wanted: Package) -> Path:
    return cache_folder() / "packages" / wanted.folder_name


def _is_complete(wanted: Package) -> bool:
    folder = _folder(wanted)
    try:
        marker = json.loads((folder / MARKER_FILE).read_bytes())
        if (marker["sha256"], marker["members"]) != (wanted.sha256, list(wanted.members)):
            return False
        return all((folder / name).stat().st_size == n for name, n in marker["files"].items())
    except (OSError, ValueError, KeyError):
        return False


def _fetch_with_bars(names: Iterable[str]) -> None:
    with Progress(
        TextColumn("{task.description:<32}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(),
        console=Console(stderr=True),
    ) as progress:  # fmt: skip
        tasks = {}

        def watch(wanted: Package, n_bytes: int) -> None:
            if wanted.name not in tasks:
                tasks[wanted.name] = progress.add_task(str(wanted), total=wanted.n_bytes)
            progress.update(tasks[wanted.name], completed=n_bytes)

        fetch(names, watch)


def _fetch_with_lines(names: Iterable[str]) -> None:
    begun = set()

    def watch(wanted: Package, n_bytes: int) -> None:
        if n_bytes == wanted.n_bytes:
            print(f"in the cache: {wanted}", file=sys.stderr)
        elif wanted.name not in begun:
            begun.add(wanted.name)
            print(f"fetching {wanted} ({wanted.n_bytes / 1e6:.1f} MB)", file=sys.stderr)

    fetch(names, watch)
