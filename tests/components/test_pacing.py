"""When requests may go out, by a clock that the test moves."""

import time
from email.utils import formatdate

import pytest

from components.pacing import Pace, seconds_of


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_without_limits_nothing_waits() -> None:
    pace = Pace(None, None)
    assert [pace.book(n_tokens=10_000) for _ in range(3)] == [0, 0, 0]


def test_requests_are_spaced_over_the_minute() -> None:
    clock = Clock()
    pace = Pace(requests_per_minute=30, tokens_per_minute=None, now=clock)
    assert [pace.book(1), pace.book(1)] == [0, 2]
    clock.now += 3
    assert pace.book(1) == 1


def test_tokens_are_booked_ahead_and_those_unused_given_back() -> None:
    pace = Pace(requests_per_minute=None, tokens_per_minute=600, now=Clock())
    assert [pace.book(100), pace.book(100)] == [0, 10]
    pace.give_back(50)
    assert pace.book(1) == 15


def test_the_stricter_limit_counts() -> None:
    pace = Pace(requests_per_minute=60, tokens_per_minute=600, now=Clock())
    assert [pace.book(100), pace.book(1), pace.book(1)] == [0, 10, 11]


def test_a_pause_holds_for_everyone_and_a_shorter_one_does_not_end_it() -> None:
    clock = Clock()
    pace = Pace(None, None, now=clock)
    pace.pause(9)
    pace.pause(2)
    assert [pace.book(1), pace.book(1)] == [9, 9]
    clock.now += 10
    assert pace.book(1) == 0


@pytest.mark.parametrize(
    ("said", "seconds"), [("7", 7), ("0.5", 0.5), ("-3", 0), ("", None), ("soon", None)]
)
def test_retry_after_is_a_number_of_seconds(said: str, seconds: float | None) -> None:
    assert seconds_of(said) == seconds


def test_retry_after_may_be_a_date() -> None:
    ahead, past = (formatdate(time.time() + n, usegmt=True) for n in (3600, -3600))
    found = seconds_of(ahead)
    assert found is not None
    assert 3590 < found <= 3600
    assert seconds_of(past) == 0
