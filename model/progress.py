"""Where a training run stands between two steps, and whoever keeps that on disk.

Noise, forcing, dropout and the order of the data are addressed by (seed, step, sample), so no
random generator has a state to keep: the number of the step says it all.
"""

import time
from dataclasses import dataclass, field
from typing import Protocol

import torch

from model.config import Config
from model.curve import History, Interval, Row


class Standing(Config):
    """`Progress` as JSON. Every member is required: a state that lacks one is no state."""

    step: int
    """Steps done; the next one is computed from this number."""

    n_skipped: int
    in_a_row: int
    """Skipped steps in all, and how many of them were the last ones."""

    rows: tuple[Row, ...]
    sums: tuple[float, ...]
    counts: tuple[float, ...]
    n_steps: int
    gradient_norm: float
    """The interval since the last row: without it, the next row would not be the same."""

    useful_seconds: float
    """Wall time of the steps up to this one, each counted once."""

    began: float
    """Seconds since 1970 at the very first step."""

    n_restarts: int


@dataclass
class Progress:
    """Where a run stands between two steps."""

    step: int = 0
    n_skipped: int = 0
    in_a_row: int = 0
    rows: list[Row] = field(default_factory=list)
    interval: Interval = field(default_factory=Interval)
    useful_seconds: float = 0.0
    began: float = field(default_factory=time.time)
    n_restarts: int = 0

    @property
    def history(self) -> History:
        return History(tuple(self.rows), self.n_skipped)

    @property
    def goodput(self) -> float:
        """Share of the wall time since the first step that went into steps which still count."""
        return min(1.0, self.useful_seconds / max(1e-9, time.time() - self.began))

    def add_row(self, row: Row) -> None:
        self.rows.append(row)
        self.interval = Interval()

    def standing(self) -> Standing:
        """All of it, ready to be written."""
        return Standing(
            step=self.step,
            n_skipped=self.n_skipped,
            in_a_row=self.in_a_row,
            rows=tuple(self.rows),
            sums=tuple(self.interval.sums_S.tolist()),
            counts=tuple(self.interval.counts_S.tolist()),
            n_steps=self.interval.n_steps,
            gradient_norm=self.interval.gradient_norm,
            useful_seconds=self.useful_seconds,
            began=self.began,
            n_restarts=self.n_restarts,
        )

    @staticmethod
    def after_restart(found: Standing) -> "Progress":
        """Where a run goes on that was kept as `found`."""
        interval = Interval(
            torch.tensor(found.sums), torch.tensor(found.counts), found.n_steps, found.gradient_norm
        )
        return Progress(
            step=found.step,
            n_skipped=found.n_skipped,
            in_a_row=found.in_a_row,
            rows=list(found.rows),
            interval=interval,
            useful_seconds=found.useful_seconds,
            began=found.began,
            n_restarts=found.n_restarts + 1,
        )


@dataclass(frozen=True)
class Wishes:
    """What a rank would like to happen after the step at hand; one rank's wish is every rank's."""

    save: bool = False
    stop: bool = False


class Keeper(Protocol):
    """Keeps a run's state while it goes on. Every rank has one; all are called at the same step."""

    def resumed(self) -> Progress:
        """Where the run stands: at its beginning, or where the engine was restored to."""
        ...

    def wishes(self, now: Progress) -> Wishes:
        """Called before each step."""
        ...

    def save(self, now: Progress, wishes: Wishes) -> None:
        """Called after a step for which some rank had a wish. Weights and optimiser are at rest."""
        ...


class Unkept:
    """Nothing is kept: a run that is short, or whose state lives in the memory of a test."""

    def resumed(self) -> Progress:
        return Progress()

    def wishes(self, now: Progress) -> Wishes:
        return Wishes()

    def save(self, now: Progress, wishes: Wishes) -> None:
        """Nothing to do."""
