"""Two ways of one computation, turn by turn; and the memory of each, alone in a process.

python -m benchmarks.measure benchmarks.concept_sums loss     prints the MiB one contestant needs
"""

import importlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

Action = Callable[[], object]


@dataclass(frozen=True)
class Floor:
    """The products alone that nobody can do without, and how near to them one should come."""

    seconds: float
    limit: float


@dataclass(frozen=True)
class Memory:
    """MiB that a contestant holds at the highest, besides what it was given and what it returns."""

    reference_mib: float
    mib: float


@dataclass(frozen=True)
class Contest:
    """Processor seconds of the reference and of ours, and how far their outputs agree."""

    name: str
    reference_seconds: float
    seconds: float
    agreement: str
    n: int
    target: float | None = None
    """How many times faster one should be; None where nothing was set."""

    floor: Floor | None = None
    memory: Memory | None = None

    def __str__(self) -> str:
        wanted = "" if self.target is None else f" (target {self.target:g})"
        line = (
            f"{self.name:<44} reference {self.reference_seconds:7.3f} s   ours "
            f"{self.seconds:7.3f} s   {self.reference_seconds / self.seconds:5.2f}×{wanted}"
        )
        if self.floor is not None:
            above = self.seconds / self.floor.seconds
            line += f"   {above:.2f}× of its products (limit {self.floor.limit:g})"
        if self.memory is not None:
            line += f"   {self.memory.reference_mib:.0f} → {self.memory.mib:.0f} MiB"
        return f"{line}   {self.agreement} (n={self.n})"


def race(
    name: str,
    reference: Action,
    ours: Action,
    agreement: str,
    repeats: int,
    *,
    target: float | None = None,
    products: Action | None = None,
    limit: float = 1.25,
    memory: Memory | None = None,
) -> Contest:
    """The least processor seconds of each, over a few turns; `products` are the floor's."""
    theirs, mine, bare = [], [], []
    for _ in range(repeats):
        theirs.append(_seconds(reference))
        mine.append(_seconds(ours))
        if products is not None:
            bare.append(_seconds(products))
    floor = Floor(min(bare), limit) if bare else None
    return Contest(name, min(theirs), min(mine), agreement, repeats, target, floor, memory)


def memory(module: str, reference: str, ours: str) -> Memory:
    """Each contestant's peak, in a process of its own."""
    return Memory(_alone(module, reference), _alone(module, ours))


def _alone(module: str, contestant: str) -> float:
    command = [sys.executable, "-m", "benchmarks.measure", module, contestant]
    told = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(told.stdout)


def _peak_mib(action: Callable[[], Iterable[Tensor]]) -> float:
    """Peak resident memory of an action above what is there before it (Linux)."""
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    returned = sum(tensor.numel() * tensor.element_size() for tensor in action())
    return (_status("VmHWM") - before) / 1024 - returned / 2**20


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def _seconds(action: Action) -> float:
    began = time.process_time()
    action()
    return time.process_time() - began


if __name__ == "__main__":
    torch.set_num_threads(1)
    contestants = importlib.import_module(sys.argv[1]).contestants()
    print(_peak_mib(contestants[sys.argv[2]]))
