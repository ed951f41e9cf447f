"""Locks of builds that nobody works on any more: who needs the build would wait for them for ever.

torch builds an extension of DeepSpeed's once, under a file `lock` that the building process holds
open and removes at the end. A build that was killed leaves its lock. Dead is a lock that no process
of this machine holds: at once where the folder lies on a disk of this machine, after
`LONGEST_SECONDS` where another machine may be building there.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from torch.utils.cpp_extension import get_default_build_root

LONGEST_SECONDS = 600.0
"""What no build takes: 18 s on an idle machine, five minutes where ten others want each core."""

POLL_SECONDS = 1.0
_OWN_DISKS = ("apfs", "btrfs", "ext3", "ext4", "overlay", "tmpfs", "xfs", "zfs")


def folder() -> Path:
    """Where this process's extensions are built."""
    return Path(os.environ.get("TORCH_EXTENSIONS_DIR") or get_default_build_root())


def settle(extensions: Path, say: Callable[[str], None]) -> None:
    """Wait for builds that go on, remove the locks of those that do not; `say` tells which."""
    for lock in _locks(extensions):
        told, n_dead = False, 0
        while (state := _State.of(lock)) is not None:
            n_dead = n_dead + 1 if state.dead else 0
            if n_dead == 2:  # torch closes the file a moment before it removes it
                lock.unlink(missing_ok=True)
                say(f"removed {lock}: {state}, so its build was killed; it is built anew")
                break
            if not told and not state.dead:
                say(f"waits for {lock}: {state}")
                told = True
            time.sleep(POLL_SECONDS)


def _locks(extensions: Path) -> list[Path]:
    """Beside each extension; torch puts a folder a Python version between where it chooses."""
    return sorted([*extensions.glob("*/lock"), *extensions.glob("*/*/lock")])


@dataclass(frozen=True)
class _State:
    """What is known of a lock."""

    holder: int | None
    """The process of this machine that has it open."""

    seconds: float
    """Its age."""

    own_disk: bool
    """Whether no other machine can have made it."""

    @staticmethod
    def of(lock: Path) -> "_State | None":
        """None where the lock is gone."""
        with suppress(FileNotFoundError):
            seconds = time.time() - lock.stat().st_mtime
            return _State(_holder(lock), seconds, _on_own_disk(lock))
        return None

    @property
    def dead(self) -> bool:
        return self.holder is None and (self.own_disk or self.seconds > LONGEST_SECONDS)

    def __str__(self) -> str:
        if self.holder is not None:
            return f"process {self.holder} is building"
        quiet = f"no process of this machine holds it, {self.seconds:.0f} s old"
        if self.dead:
            return quiet
        return (
            f"{quiet}; another machine may be building, until {LONGEST_SECONDS:.0f} s. Remove it "
            f"if you know that none is"
        )


def _holder(lock: Path) -> int | None:
    """The process that has the lock open, of those we may look at."""
    real = str(lock.resolve())
    for process in psutil.process_iter():
        if real in _open_files(process):
            return int(process.pid)
    return None


def _open_files(process: psutil.Process) -> Iterator[str]:
    with suppress(psutil.Error):
        yield from (file.path for file in process.open_files())


def _on_own_disk(path: Path) -> bool:
    real = path.resolve()
    around = [
        part for part in psutil.disk_partitions(all=True) if real.is_relative_to(part.mountpoint)
    ]
    nearest = max(around, key=lambda part: len(part.mountpoint), default=None)
    return nearest is not None and nearest.fstype in _OWN_DISKS
