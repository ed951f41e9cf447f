"""The line is bounded, batches hold one sort, and whoever leaves frees a place."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from components.explaining.requests import GenerateRequest
from components.explaining.schema import Generation
from components.serving.metrics import Metrics
from components.serving.queueing import Desk, Job, QueueFullError
from model.sampling_config import SamplingConfig
from tests.components.serving.asking import config


def echo(request: GenerateRequest) -> Generation:
    return Generation(
        request=request, prompt_tokens=(), text=request.prompt, tokens=(), stopped=False
    )


class Worker:
    """Echoes prompts once it may go on; a prompt that says so fails. Remembers its batches."""

    def __init__(self) -> None:
        self.may_go_on, self.has_begun = threading.Event(), threading.Event()
        self.batches: list[list[str]] = []
        self.wanted: list[bool] = []

    def __call__(self, jobs: Sequence[Job]) -> list[Generation]:
        self.batches.append([job.request.prompt for job in jobs])  # type: ignore[union-attr]
        self.has_begun.set()
        assert self.may_go_on.wait(10)
        self.wanted = [job.is_wanted for job in jobs]
        if "bad" in self.batches[-1]:
            raise ValueError("a bad prompt")
        return [echo(job.request) for job in jobs]  # type: ignore[arg-type]


def job(prompt: str, sort: str = "s") -> Job:
    request = GenerateRequest(prompt=prompt, sampling=SamplingConfig(n_new=1))
    return Job(request, sort, lambda text: None)


class Open:
    """A desk at work: entered to use it, left to close it."""

    def __init__(self, **changes: Any) -> None:
        self.worker, self.metrics = Worker(), Metrics()
        self.desk = Desk(self.worker, config(**changes), self.metrics)

    async def __aenter__(self) -> "Open":
        self.running = asyncio.create_task(self.desk.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.worker.may_go_on.set()
        self.running.cancel()
        await asyncio.wait([self.running])

    async def busy(self, prompt: str = "first") -> Job:
        """A job that the worker has begun."""
        first = job(prompt)
        self.desk.enter(first)
        await asyncio.to_thread(self.worker.has_begun.wait, 10)
        return first


def test_full_line_says_when_to_come_again_and_a_place_is_free_once_someone_leaves() -> None:
    async def story() -> None:
        async with Open(queue_length=2, batch_size=1) as at:
            await at.busy()
            waiting = [job("a"), job("b")]
            for one in waiting:
                at.desk.enter(one)
            with pytest.raises(QueueFullError, match="2 requests wait already") as full:
                at.desk.enter(job("c"))
            assert full.value.seconds >= 1
            at.desk.leave(waiting[0], "client_left")
            late = job("c")
            at.desk.enter(late)
            at.worker.may_go_on.set()
            await asyncio.wait([waiting[1].answer, late.answer])
            assert at.worker.batches == [["first"], ["b"], ["c"]]
            assert waiting[0].answer.cancelled()

    asyncio.run(story())


def test_batch_takes_the_oldest_and_those_of_its_sort_alone() -> None:
    async def story() -> None:
        async with Open(batch_size=3) as at:
            await at.busy()
            jobs = [job(name, sort) for name, sort in zip("abcdef", "xyxxxy", strict=True)]
            for one in jobs:
                at.desk.enter(one)
            at.worker.may_go_on.set()
            await asyncio.wait([one.answer for one in jobs])
            assert at.worker.batches[1:] == [["a", "c", "d"], ["b", "f"], ["e"]]
            assert [one.answer.result().text for one in jobs] == list("abcdef")  # type: ignore[union-attr]

    asyncio.run(story())


def test_bad_row_fails_alone() -> None:
    async def story() -> None:
        async with Open(batch_size=3) as at:
            await at.busy()
            jobs = [job("a"), job("bad"), job("c")]
            for one in jobs:
                at.desk.enter(one)
            at.worker.may_go_on.set()
            await asyncio.wait([one.answer for one in jobs])
            assert [one.answer.exception() is None for one in jobs] == [True, False, True]
            assert [jobs[i].answer.result().text for i in (0, 2)] == ["a", "c"]  # type: ignore[union-attr]

    asyncio.run(story())


def test_worker_hears_that_a_row_it_writes_is_no_longer_wanted() -> None:
    async def story() -> None:
        async with Open() as at:
            first = await at.busy()
            at.desk.leave(first, "timeout")
            after = job("after")
            at.desk.enter(after)
            at.worker.may_go_on.set()
            await asyncio.wait([after.answer])
            assert at.worker.batches == [["first"], ["after"]]
        left = at.metrics.registry.get_sample_value(
            "clearstory_abandoned_total", {"reason": "timeout"}
        )
        assert left == 1.0

    asyncio.run(story())


def test_end_gives_up_whatever_waits_or_runs() -> None:
    async def story() -> None:
        async with Open(batch_size=1) as at:
            first, second = await at.busy(), job("second")
            at.desk.enter(second)
            at.worker.may_go_on.set()
            at.running.cancel()
            await asyncio.wait([at.running])
        assert first.answer.cancelled()
        assert second.answer.cancelled()
        assert not first.is_wanted
        assert not second.is_wanted

    asyncio.run(story())
