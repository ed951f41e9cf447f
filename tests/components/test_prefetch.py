"""Batches made ahead: the same ones, and failures that arrive with their own step."""

import threading

import pytest
import torch

from components.loader import LoaderError
from components.prefetch import Prefetched
from model.diffusion import Batch


class Counting:
    """Batches that must be asked for in order, as a stream's; remembers how far it went."""

    def __init__(self, broken=None):
        self.at, self.broken = 0, broken
        self.made = threading.Semaphore(0)

    def batch(self, step):
        if step == self.broken:
            raise OSError(f"step {step} cannot be read")
        assert step == self.at
        self.at += 1
        self.made.release()
        none = torch.empty(0)
        return Batch(torch.tensor([[step]]), none, none, none, torch.tensor([step]))

    def state(self, step):
        assert step == self.at
        return {"step": step}

    def check(self, state):
        pass

    def restore(self, state):
        self.at = state["step"]


def test_batches_and_states_are_those_of_the_source_though_it_is_ahead():
    source = Counting()
    batches = Prefetched(source, depth=2)
    assert batches.state(0) == {"step": 0}
    for step in range(3):
        assert batches.batch(step).sample_ids_B.tolist() == [step]
        assert batches.state(step + 1) == {"step": step + 1}
    for _ in range(5):
        assert source.made.acquire(timeout=60)  # two steps ahead of the three given
    assert source.at == 5
    batches.close()


def test_a_failure_arrives_with_its_step_and_not_before():
    batches = Prefetched(Counting(broken=2))
    for step in (0, 1):
        batches.batch(step)
    with pytest.raises(OSError, match="step 2 cannot be read"):
        batches.batch(2)
    batches.close()


def test_going_back_to_a_state_forgets_what_was_made_ahead():
    batches = Prefetched(Counting())
    kept = [batches.state(0)]
    for step in range(4):
        batches.batch(step)
        kept.append(batches.state(step + 1))
    batches.restore(kept[2])
    assert batches.batch(2).sample_ids_B.tolist() == [2]
    assert batches.state(3) == kept[3]
    batches.close()


def test_the_state_of_another_step_than_the_next_is_refused():
    batches = Prefetched(Counting())
    batches.batch(0)
    with pytest.raises(LoaderError, match="state of step 5 was asked for, but step 1 comes next"):
        batches.state(5)
    batches.close()


def test_closing_ends_the_thread_even_if_a_batch_ahead_has_failed():
    before = threading.active_count()
    batches = Prefetched(Counting(broken=1))
    batches.batch(0)
    batches.close()
    assert threading.active_count() == before
