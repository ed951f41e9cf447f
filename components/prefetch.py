"""Batches made while the step before still runs.

Worth its thread where reading waits: 12 windows from S3 took 50 ms of a step of 418 ms, from a
folder 0.7 ms (docs/decisions/0006). What a batch is does not change.
"""

from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from components.loader import Batches, LoaderError, State
from model.diffusion import Batch


@dataclass(frozen=True)
class _Made:
    """A batch, and what must be kept to go on after it."""

    batch: Batch
    state_after: State


class Prefetched:
    """Other batches, up to `depth` steps ahead of the one that was asked for."""

    def __init__(self, batches: Batches, depth: int = 2) -> None:
        self._batches, self._depth = batches, depth
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="batches")
        self._pending: deque[Future[_Made]] = deque()
        self._next = 0
        self._state_of_next: State = {}

    def batch(self, step: int) -> Batch:
        """See Batches. A failure of the background is raised here, when its step is asked for."""
        if step != self._next:
            self._drop()
            self._next = step
        while len(self._pending) <= self._depth:
            self._pending.append(self._pool.submit(self._make, step + len(self._pending)))
        made = self._pending.popleft().result()
        self._next, self._state_of_next = step + 1, made.state_after
        return made.batch

    def state(self, step: int) -> State:
        """See Batches: of the next step to be asked for, whatever was made ahead of it."""
        if not self._pending:
            return self._batches.state(step)
        if step != self._next:
            raise LoaderError(
                f"the state of step {step} was asked for, but step {self._next} comes next; its "
                f"state is the one to keep"
            )
        return self._state_of_next

    def check(self, state: Mapping[str, object]) -> None:
        """See Batches."""
        self._batches.check(state)

    def restore(self, state: Mapping[str, object]) -> None:
        """See Batches."""
        self._drop()
        self._batches.restore(state)

    def close(self) -> None:
        """Wait for the batch that is being made, and end the thread."""
        self._drop()
        self._pool.shutdown()

    def _make(self, step: int) -> _Made:
        return _Made(self._batches.batch(step), self._batches.state(step + 1))

    def _drop(self) -> None:
        """Forget what was made ahead. The thread is at rest afterwards."""
        for future in self._pending:
            future.cancel()
        for future in self._pending:
            if not future.cancelled():
                future.exception()  # waits; whose step is never asked for need not fail anybody
        self._pending.clear()
