"""Inside a rank: what keeps the run's state while it goes on (`model.progress.Keeper`), on disk.

Savepoints come by the clock of rank 0, by steps, and when somebody asks the run to stop: SIGTERM
lets the step at hand end, then all ranks write, if the grace allows it, and leave together.
"""

import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

import torch

from components import savepoints
from components.loader import State
from components.manifests import FileDigest
from components.savepoints import Savepoint
from components.training_state import TrainingState
from model.config import Config
from model.engine import Engine
from model.events import Event, Events
from model.progress import Progress, Standing, Wishes
from model.train_config import SavingConfig


class _FromRank(Config):
    """What rank 0 must know of another rank to commit for all."""

    written: dict[str, FileDigest]
    loader: dict[str, object]
    """Where the rank's batches stand: streams have a state of their own on every rank."""


class ScratchKeeper:
    """Keeps a run in its scratch folder. Every rank has one; rank 0 commits and tidies.

    `start` is the savepoint to go on from, None where the run begins.
    """

    def __init__(
        self,
        scratch: Path,
        engine: Engine,
        saving: SavingConfig,
        start: Savepoint | None,
        loader_at: Callable[[int], State],
        state_of: Callable[[Standing, Sequence[State]], TrainingState],
        events: Events,
    ) -> None:
        """`loader_at` gives this rank's loader state at a step; `state_of` gets all ranks'."""
        self._scratch = scratch
        self._engine = engine
        self._saving = saving
        self._start = start
        self._loader_at, self._state_of = loader_at, state_of
        self._events = events
        self._saved_at = time.monotonic()
        self._save_seconds = 0.0
        self._asked_at: float | None = None
        self._tidying: threading.Thread | None = None
        for name in (signal.SIGTERM, signal.SIGINT):  # Ctrl-C reaches every process of a terminal
            signal.signal(name, self._asked_to_stop)
        if engine.rank == 0:
            savepoints.clear_attempts(scratch)

    def resumed(self) -> Progress:
        if self._start is None:
            return Progress()
        self._engine.restore(self._start.folder)
        return Progress.after_restart(self._start.state.standing)

    def wishes(self, now: Progress) -> Wishes:
        late = time.monotonic() - self._saved_at >= self._saving.every_seconds
        return Wishes(
            save=self._is_due(now.step + 1) or (late and self._engine.rank == 0),
            stop=self._asked_at is not None,
        )

    def save(self, now: Progress, wishes: Wishes) -> None:
        """Write, commit, tidy up in the background. In a bad stretch the last good one stays."""
        if now.in_a_row or (wishes.stop and not self._fits_the_grace()):
            return
        began = time.monotonic()
        permanent = bool(self._saving.keep_every) and now.step % self._saving.keep_every == 0
        folder = savepoints.attempt(self._scratch, now.step, permanent=permanent)
        if self._engine.rank == 0:
            savepoints.begin(folder)
        self._barrier()
        written = {
            name: FileDigest(bytes=found.bytes, sha256=found.sha256)
            for name, found in self._engine.save(folder).items()
        }
        told = _FromRank(written=written, loader=self._loader_at(now.step))
        _told_by(folder, self._engine.rank).write_text(told.model_dump_json())
        self._barrier()
        if self._engine.rank == 0:
            self._commit(folder, now)
        self._saved_at = time.monotonic()
        self._save_seconds = self._saved_at - began

    def close(self) -> None:
        """Wait for what still tidies up."""
        if self._tidying is not None:
            self._tidying.join()

    def _is_due(self, step: int) -> bool:
        periods = (self._saving.every_steps, self._saving.keep_every)
        return any(period and step % period == 0 for period in periods)

    def _commit(self, folder: Path, now: Progress) -> None:
        written: dict[str, FileDigest] = {}
        loaders: list[State] = []
        for rank in range(self._engine.world):
            path = _told_by(folder, rank)
            told = _FromRank.model_validate_json(path.read_bytes())
            written |= told.written
            loaders.append(told.loader)
            path.unlink()
        self.close()
        savepoints.commit(folder, self._state_of(now.standing(), loaders), written)
        self._tidying = threading.Thread(target=self._tidy, args=(now.step,))
        self._tidying.start()

    def _tidy(self, step: int) -> None:
        """Read the new savepoint back before an old one is removed."""
        for problem in savepoints.tidy(self._scratch, self._saving.last):
            self._events(Event(step, 0, message=f"a savepoint does not verify: {problem}"))

    def _fits_the_grace(self) -> bool:
        """Whether a savepoint can be written before the ranks are killed. Rank 0 decides."""
        waited = 0.0 if self._asked_at is None else time.monotonic() - self._asked_at
        fits = waited + 1.5 * self._save_seconds < self._saving.grace_seconds
        mine = float(fits and self._engine.rank == 0)
        return bool(self._engine.total(torch.tensor([mine])).item())

    def _barrier(self) -> None:
        self._engine.total(torch.zeros(1))

    def _asked_to_stop(self, signum: int, frame: FrameType | None) -> None:
        if self._asked_at is None:
            self._asked_at = time.monotonic()


def _told_by(folder: Path, rank: int) -> Path:
    return folder / f"told-by-{rank}.json"
