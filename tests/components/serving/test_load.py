"""Many clients at once: no error, and each answer is the one its request gets alone."""

import pytest

from benchmarks.serving import TOLERANCE, answers, difference
from components.explaining.opened import Opened
from tests.components.serving.served import mixed, serving


def crossed(opened: Opened, n: int, n_clients: int) -> list[int]:
    """Numbers of the requests whose answers in company differ from those alone."""
    asked = mixed(n)
    with serving(opened, batch_size=1) as address:
        alone = answers(address, asked, 1)
    with serving(opened, queue_length=n, batch_wait_seconds=0.01) as address:
        together = answers(address, asked, n_clients)
    assert not [told for told in alone + together if told.answer is None]
    apart = [
        difference(one.answer, other.answer) for one, other in zip(alone, together, strict=True)
    ]
    return [number for number, far in enumerate(apart) if far > TOLERANCE]


def test_24_requests_of_4_clients_are_answered_as_if_alone(opened: Opened) -> None:
    assert crossed(opened, 24, 4) == []


@pytest.mark.slow
def test_200_requests_of_16_clients_are_answered_as_if_alone(opened: Opened) -> None:
    assert crossed(opened, 200, 16) == []
