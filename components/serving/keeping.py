"""Explanations that stay: written beside their place and renamed into it, whole or not at all.

    <folder>/<name>/answer.json    what was asked and what was answered
    <folder>/<name>/page.html      the same as a page that opens from the folder

A name is the digest of the answer, so the same answer is kept once, and what stands there never
changes. One server holds a folder at a time; the next sweeps away what a killed one left half
written.
"""

import fcntl
import hashlib
import os
import re
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path

ANSWER, PAGE = "answer.json", "page.html"
_NAME = re.compile(r"[0-9a-f]{24}")
_PARTIAL, _LOCK = ".partial-", ".lock"


class Shelf:
    """A folder of kept answers."""

    def __init__(self, folder: Path) -> None:
        """Open it, or make it. Raises ValueError where nothing can be written."""
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = (folder / _LOCK).open("a")
        except OSError as error:
            raise ValueError(
                f"explanations cannot be kept in {folder} ({error.strerror}); give a folder that "
                f"can be written with --keep"
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._lock.close()
            raise ValueError(
                f"another server keeps its explanations in {folder}; give each its own --keep"
            ) from error
        for left in folder.glob(f"{_PARTIAL}*"):
            shutil.rmtree(left)

    def close(self) -> None:
        """Let another server have the folder."""
        self._lock.close()

    def keep(self, files: Mapping[str, bytes]) -> str:
        """Put files in place together. Returns their name once they would outlast a power cut."""
        name = hashlib.sha256(files[ANSWER]).hexdigest()[:24]
        place = self._folder / name
        if place.exists():
            return name
        partial = self._folder / f"{_PARTIAL}{uuid.uuid4().hex}"
        partial.mkdir()
        for file, content in files.items():
            with (partial / file).open("xb") as opened:
                opened.write(content)
                opened.flush()
                os.fsync(opened.fileno())
        _sync(partial)
        try:
            partial.rename(place)
        except OSError:
            if not place.exists():
                raise
            shutil.rmtree(partial)  # another thread kept the same answer meanwhile
        _sync(self._folder)
        return name

    def read(self, name: str, file: str) -> bytes | None:
        """A kept file, or None. Only names that `keep` gives can reach the disk."""
        if not _NAME.fullmatch(name) or file not in (ANSWER, PAGE):
            return None
        path = self._folder / name / file
        return path.read_bytes() if path.is_file() else None


def _sync(folder: Path) -> None:
    """Make a folder's entries outlast a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
