"""One thread owns the network; requests wait for it in a bounded line and share its batches.

    enter    a job takes a place in the line, or QueueFullError says when to come again
    batch    the oldest job and those behind it of its sort, up to `batch_size`, together
    leave    its client went, or its time is over: a place in the line is free at once, a row of a
             running batch at the end of its block

All of it happens on the event loop but the work itself; a job tells its blocks from the worker's
thread. A batch that fails as one is run again row by row: a bad row fails alone.
"""

import asyncio
import math
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from components.serving.config import ServeConfig
from components.serving.metrics import Metrics
from components.serving.schema import Answer, Asked

_FIRST_GUESS_SECONDS = 1.0
_MEMORY = 0.8
"""Weight of the past in the running mean of a batch's seconds."""


class QueueFullError(Exception):
    """The line is full. `seconds`: when a place may be free."""

    def __init__(self, length: int, seconds: int) -> None:
        super().__init__(
            f"{length} requests wait already, which is the limit; come again in {seconds} s"
        )
        self.seconds = seconds


@dataclass(eq=False)
class Job:
    """One request on its way through the line."""

    request: Asked
    sort: Hashable
    """Jobs of one sort can share a batch."""

    tell: Callable[[str], None]
    """Takes the text of a row so far, after each of its blocks, on the worker's thread."""

    answer: asyncio.Future[Answer] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    is_wanted: bool = True
    """The worker asks between blocks."""


Work = Callable[[Sequence[Job]], Sequence[Answer]]
"""What the network does for jobs of one sort: an answer each, in their order."""


class Desk:
    """The line, and the one batch that runs."""

    def __init__(self, work: Work, config: ServeConfig, metrics: Metrics) -> None:
        self._work, self._config, self._metrics = work, config, metrics
        self._line: list[Job] = []
        self._running: Sequence[Job] = ()
        self._arrived = asyncio.Event()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="network")
        self._batch_seconds = _FIRST_GUESS_SECONDS
        self.is_draining = False
        """The server ends: nothing new is let in."""

    @property
    def n_waiting(self) -> int:
        return len(self._line)

    @property
    def n_running(self) -> int:
        return len(self._running)

    def enter(self, job: Job) -> None:
        """Put a job in the line. Raises QueueFullError."""
        if len(self._line) >= self._config.queue_length:
            raise QueueFullError(self._config.queue_length, self._seconds_to_wait())
        self._line.append(job)
        self._arrived.set()
        self._tell_depth()

    def leave(self, job: Job, why: str) -> None:
        """Give a job up, wherever it is. One that is answered stays so."""
        if job.answer.done():
            return
        job.is_wanted = False
        job.answer.cancel()
        if job in self._line:
            self._line.remove(job)
        self._metrics.abandoned.labels(why).inc()
        self._tell_depth()

    def give_up(self) -> None:
        """Let go of everything that waits or runs: it is answered that the server ended."""
        for job in (*self._line, *self._running):
            self.leave(job, "ended")

    async def run(self) -> None:
        """Work through the line until cancelled; whatever still waits or runs is given up then.

        The worker ends by itself once it notices, between blocks or chunks: nobody waits for it.
        """
        try:
            while True:
                self._running = await self._next_batch()
                self._tell_depth()
                began = time.monotonic()
                await self._attempt(self._running)
                self._note(time.monotonic() - began)
        finally:
            self.give_up()
            self._worker.shutdown(wait=False, cancel_futures=True)

    async def _next_batch(self) -> list[Job]:
        while True:
            await self._arrived.wait()
            if len(self._line) < self._config.batch_size:
                await asyncio.sleep(self._config.batch_wait_seconds)
            if self._line:  # companions came, or the only one went
                break
            self._arrived.clear()
        sort = self._line[0].sort
        batch = [job for job in self._line if job.sort == sort][: self._config.batch_size]
        self._line = [job for job in self._line if job not in batch]
        if not self._line:
            self._arrived.clear()
        return batch

    async def _attempt(self, batch: Sequence[Job]) -> None:
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._worker, self._work, batch)
        await asyncio.wait([work])
        error = work.exception()
        if error is not None and len(batch) > 1:
            for job in batch:
                if job.is_wanted:
                    await self._attempt([job])
            return
        for row, job in enumerate(batch):
            if job.answer.done():
                continue
            if error is None:
                job.answer.set_result(work.result()[row])
            else:
                job.answer.set_exception(error)

    def _note(self, seconds: float) -> None:
        self._metrics.batch_rows.observe(len(self._running))
        self._metrics.busy.inc(seconds)
        self._batch_seconds = _MEMORY * self._batch_seconds + (1 - _MEMORY) * seconds
        self._running = ()
        self._tell_depth()

    def _seconds_to_wait(self) -> int:
        """Until the batches that stand before a newcomer are done, from those that were."""
        n_batches = 1 + len(self._line) / self._config.batch_size
        return max(1, math.ceil(n_batches * self._batch_seconds))

    def _tell_depth(self) -> None:
        self._metrics.waiting.set(len(self._line))
        self._metrics.running.set(len(self._running))
