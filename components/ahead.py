"""Batches made while the step before them runs: for sources that have to be waited for.

One thread makes them, in order, and keeps the state before each: what a savepoint holds is where
training stands, not how far ahead was read.
"""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from components.loader import Batches, Contribution, State
from model.diffusion import Batch


class Ahead:
    """Other batches (`components.loader.Batches`), up to `n_ahead` of them early."""

    def __init__(self, batches: Batches, *, n_ahead: int, n_steps: int) -> None:
        """Nothing is read beyond the last of `n_steps` steps."""
        self._batches, self._n_ahead, self._n_steps = batches, n_ahead, n_steps
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ahead")
        self._coming: dict[int, Future[tuple[State, Batch]]] = {}

    def batch(self, step: int) -> Batch:
        """See Batches. What failed while it was read ahead fails here."""
        end = min(self._n_steps, step + 1 + self._n_ahead)
        wanted = range(step, max(end, step + 1))
        self._coming = {one: self._coming.get(one) or self._begun(one) for one in wanted}
        return self._coming.pop(step).result()[1]

    def state(self, step: int) -> State:
        """See Batches."""
        if step in self._coming:
            return self._coming[step].result()[0]
        return self._thread.submit(self._batches.state, step).result()

    def check(self, state: Mapping[str, object]) -> None:
        """See Batches."""
        self._batches.check(state)

    def restore(self, state: Mapping[str, object]) -> None:
        """See Batches. Before the first batch, or nothing read ahead would be true."""
        assert not self._coming, f"steps {sorted(self._coming)} were read ahead already"
        self._batches.restore(state)

    def accounting(self, step: int) -> dict[str, Contribution]:
        """See Batches."""
        return self._batches.accounting(step)

    def close(self) -> None:
        """Wait for the batch at hand, give up the others."""
        self._thread.shutdown(cancel_futures=True)
        self._batches.close()

    def _begun(self, step: int) -> Future[tuple[State, Batch]]:
        return self._thread.submit(_made, self._batches, step)


def _made(batches: Batches, step: int) -> tuple[State, Batch]:
    return batches.state(step), batches.batch(step)
