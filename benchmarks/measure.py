"""Two ways of one computation, turn by turn."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Contest:
    """Processor seconds of the reference and of ours, and how far their outputs agree."""

    name: str
    reference_seconds: float
    seconds: float
    agreement: str
    n: int

    def __str__(self) -> str:
        ratio = self.reference_seconds / self.seconds
        return (
            f"{self.name:<32} reference {self.reference_seconds:8.3f} s   ours "
            f"{self.seconds:8.3f} s   {ratio:5.1f}×   {self.agreement} (n={self.n})"
        )


def race(
    name: str,
    reference: Callable[[], object],
    ours: Callable[[], object],
    agreement: str,
    repeats: int,
) -> Contest:
    """The least processor seconds of each, over a few turns."""
    theirs, mine = [], []
    for _ in range(repeats):
        theirs.append(_seconds(reference))
        mine.append(_seconds(ours))
    return Contest(name, min(theirs), min(mine), agreement, repeats)


def _seconds(action: Callable[[], object]) -> float:
    began = time.process_time()
    action()
    return time.process_time() - began
