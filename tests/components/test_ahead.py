"""Reading ahead: the batches of steps to come are made, and nothing else changes."""

import threading

import pytest

from components.ahead import Ahead
from components.loader import LoaderError

WAITS_SECONDS = 10.0


class Recorded:
    """Batches that are the number of their step, in order alone, as streams are."""

    def __init__(self, fails_at=99):
        self.made, self.fails_at, self.is_closed = [], fails_at, False
        self.next, self.condition = 0, threading.Condition()

    def batch(self, step):
        if step == self.fails_at:
            raise LoaderError(f"no text at step {step}")
        assert step == self.next
        with self.condition:
            self.made.append(step)
            self.next += 1
            self.condition.notify_all()
        return step

    def until(self, made):
        """Wait until these were made."""
        with self.condition:
            assert self.condition.wait_for(lambda: self.made == made, WAITS_SECONDS)

    def state(self, step):
        return {"step": step, "stands": self.next}

    def restore(self, state):
        self.next = state["step"]

    def close(self):
        self.is_closed = True


@pytest.fixture
def ahead():
    opened = []

    def make(inner, **settings):
        opened.append(Ahead(inner, **{"n_ahead": 2, "n_steps": 5, **settings}))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def test_the_next_batches_are_made_while_a_step_runs_and_none_after_the_last(ahead):
    inner = Recorded()
    batches = ahead(inner)
    assert batches.batch(0) == 0
    inner.until([0, 1, 2])
    assert [batches.batch(step) for step in range(1, 5)] == [1, 2, 3, 4]
    inner.until([0, 1, 2, 3, 4])


def test_a_state_says_where_training_stands_and_not_what_was_read(ahead):
    inner = Recorded()
    batches = ahead(inner)
    batches.batch(0)
    inner.until([0, 1, 2])
    assert batches.state(1) == {"step": 1, "stands": 1}


def test_a_run_goes_on_at_a_restored_step(ahead):
    batches = ahead(Recorded())
    batches.restore({"step": 3})
    assert [batches.batch(step) for step in (3, 4)] == [3, 4]
    assert batches.state(5) == {"step": 5, "stands": 5}


def test_what_fails_ahead_fails_at_its_own_step(ahead):
    batches = ahead(Recorded(fails_at=2))
    assert [batches.batch(step) for step in (0, 1)] == [0, 1]
    with pytest.raises(LoaderError, match="no text at step 2"):
        batches.batch(2)


def test_closing_closes_what_is_read(ahead):
    inner = Recorded()
    ahead(inner).close()
    assert inner.is_closed
