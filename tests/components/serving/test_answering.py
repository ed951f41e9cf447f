"""A client that leaves, and an answer that is late, give their place to the next."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from components.explaining.opened import Opened
from components.explaining.requests import GenerateRequest
from components.explaining.writing import generate
from components.serving.answering import lines, streamed
from components.serving.app import Application, application
from components.serving.schema import Answer
from tests.components.serving.asking import called, config, scope, text
from tests.components.serving.held import held

BODY = json.dumps(text(n_new=30)).encode()
"""Four blocks of eight."""


@asynccontextmanager
async def running(opened: Opened, **changes: Any) -> AsyncIterator[Application]:
    """An application whose desk is at work, without a socket."""
    made = application(opened, config(**changes))
    at_work = asyncio.create_task(made.desk.run())
    yield made
    at_work.cancel()
    await asyncio.wait([at_work])


class Client:
    """Sends a request and stays until it is told to leave."""

    def __init__(self, made: Application, query: bytes = b"", body: bytes = BODY) -> None:
        self._leaves, self._sent, self._body = asyncio.Event(), False, body
        request = {**scope("/generate", body), "query_string": query}
        self.answer = asyncio.create_task(called(made.asgi, request, self._receive))

    async def _receive(self) -> dict[str, Any]:
        if not self._sent:
            self._sent = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        await self._leaves.wait()
        return {"type": "http.disconnect"}

    async def leaves(self) -> None:
        self._leaves.set()
        await asyncio.wait([self.answer])


async def until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0)


def test_waiting_client_that_leaves_frees_its_place(opened: Opened) -> None:
    async def story() -> None:
        with held(opened) as brake:
            async with running(opened, queue_length=1, batch_size=1) as made:
                first = Client(made)
                await until(brake.has_begun.is_set)
                second = Client(made)
                await until(lambda: made.desk.n_waiting == 1)
                status, problem = await Client(made).answer
                assert (status, problem["error"]) == (429, "queue_full")
                await second.leaves()
                assert made.desk.n_waiting == 0
                third = Client(made)
                await until(lambda: made.desk.n_waiting == 1)
                brake.may_go_on.set()
                assert (await first.answer)[0] == (await third.answer)[0] == 200

    asyncio.run(story())


@pytest.mark.parametrize("query", [b"", b"stream=true"])
def test_client_that_leaves_while_its_text_is_written_ends_it_with_the_block(
    opened: Opened, query: bytes
) -> None:
    async def passes(*, leaves: bool) -> int:
        with held(opened) as brake:
            async with running(opened) as made:
                client = Client(made, query)
                await until(brake.has_begun.is_set)
                if leaves:
                    await client.leaves()
                brake.may_go_on.set()
                await until(lambda: made.desk.n_running == 0)
                await asyncio.wait([client.answer])
            return brake.n_passes

    assert asyncio.run(passes(leaves=True)) < asyncio.run(passes(leaves=False)) / 2


def test_requests_that_differ_in_prompts_and_seeds_share_a_batch(opened: Opened) -> None:
    asked = [text(f"the storm {'and ' * seed}", 11, temperature=0.9, seed=seed) for seed in (3, 1)]

    async def story() -> list[dict[str, Any]]:
        with held(opened) as brake:
            async with running(opened) as made:
                first = Client(made)
                await until(brake.has_begun.is_set)
                clients = [Client(made, body=json.dumps(body).encode()) for body in asked]
                await until(lambda: made.desk.n_waiting == 2)
                brake.may_go_on.set()
                answers = [(await client.answer)[1] for client in clients]
                assert (await first.answer)[0] == 200
        figures = made.metrics.registry.get_sample_value
        assert figures("clearstory_batch_rows_sum") == 3.0
        assert figures("clearstory_batch_rows_count") == 2.0
        return answers

    for body, answer in zip(asked, asyncio.run(story()), strict=True):
        (alone,) = generate(opened, [GenerateRequest.model_validate(body)])
        assert answer["text"] == alone.text


def test_late_answer_is_given_up_with_the_limit(opened: Opened) -> None:
    async def story() -> None:
        with held(opened) as brake:
            async with running(opened, limits={"answer_seconds": 0.02}) as made:
                status, problem = await Client(made).answer
                assert (status, problem["error"]) == (504, "timeout")
                assert "within 0.02 s" in problem["message"]
                brake.may_go_on.set()
                await until(lambda: made.desk.n_running == 0)
                figures = made.metrics.registry.get_sample_value
        assert figures("clearstory_abandoned_total", {"reason": "timeout"}) == 1.0

    asyncio.run(story())


def test_streamed_answer_that_cannot_be_kept_ends_in_a_problem(opened: Opened) -> None:
    async def unkept(_: Answer) -> bytes:
        raise OSError(28, "No space left on device")

    async def story() -> None:
        async with running(opened) as made:
            asked = GenerateRequest.model_validate(text(n_new=4))
            under_way = streamed(asked, made.desk)
            *_, last = [line async for line in lines(under_way, made.desk, 60.0, unkept)]
            assert json.loads(last)["event"] == "problem"
            assert json.loads(last)["status"] == 500

    asyncio.run(story())
