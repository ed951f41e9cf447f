"""From a request to its answer: at once or by block, in time, and not for a client that left."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from components.explaining.vocabulary import AmbiguousConceptError, ConceptError
from components.serving.network import sort_of
from components.serving.problems import INTERNAL, Problem, RefusedError, as_json
from components.serving.queueing import Desk, Job, QueueFullError
from components.serving.schema import Answer, Asked

_LOG = logging.getLogger(__name__)
_NOBODY_READS = 499


@dataclass(frozen=True)
class Streamed:
    """An answer under way: the text of its blocks, then the answer."""

    job: Job
    blocks: "asyncio.Queue[str | None]"
    """None after the last."""


async def answered(request: Request, asked: Asked, desk: Desk, seconds: float) -> Answer:
    """The answer, whole. Raises RefusedError when there is none in time."""
    job = _entered(desk, asked, lambda text: None)
    gone = asyncio.ensure_future(_gone(request))
    why = "timeout"
    try:
        either: set[asyncio.Future[Any]] = {job.answer, gone}
        await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if job.answer.done():
            return _result(job)
        if gone.done():
            why = "client_left"
            raise RefusedError(
                _NOBODY_READS, Problem(error="client_left", message="the client went")
            )
        raise _late(seconds)
    finally:
        gone.cancel()
        desk.leave(job, why)


def streamed(asked: Asked, desk: Desk) -> Streamed:
    """Take a place in the line for an answer by block. Raises RefusedError."""
    blocks: asyncio.Queue[str | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def tell(text: str) -> None:
        loop.call_soon_threadsafe(blocks.put_nowait, text)

    job = _entered(desk, asked, tell)
    job.answer.add_done_callback(lambda _: blocks.put_nowait(None))
    return Streamed(job, blocks)


async def lines(
    answer: Streamed, desk: Desk, seconds: float, finished: Callable[[Answer], Awaitable[bytes]]
) -> AsyncIterator[bytes]:
    """NDJSON: {"event": "block", "text": so far} by block, then what `finished` makes of the
    answer, or {"event": "problem", "status": …, "problem": …}.

    Whoever stops reading gives the job up.
    """
    ends, why, told = asyncio.get_running_loop().time() + seconds, "client_left", ""
    try:
        while True:
            left = max(0.0, ends - asyncio.get_running_loop().time())
            text = await asyncio.wait_for(answer.blocks.get(), left)
            if text is None:
                break
            if text != told:
                yield _line({"event": "block", "text": text})
            told = text
        yield await finished(_result(answer.job))
    except TimeoutError:
        why = "timeout"
        yield _problem_line(_late(seconds))
    except RefusedError as refused:
        yield _problem_line(refused)
    except OSError as error:
        _LOG.error("an answer could not be kept", exc_info=error)
        yield _problem_line(RefusedError(500, INTERNAL))
    finally:
        desk.leave(answer.job, why)


def _entered(desk: Desk, asked: Asked, tell: Callable[[str], None]) -> Job:
    job = Job(asked, sort_of(asked), tell)
    try:
        desk.enter(job)
    except QueueFullError as full:
        raise RefusedError(
            429, Problem(error="queue_full", message=str(full)), {"Retry-After": str(full.seconds)}
        ) from full
    return job


def _result(job: Job) -> Answer:
    """The answer of a job that is done; raises RefusedError where there is none."""
    if job.answer.cancelled():
        raise RefusedError(
            503, Problem(error="ending", message="the server ended before the answer was made")
        )
    error = job.answer.exception()
    if error is None:
        return job.answer.result()
    if isinstance(error, ConceptError):
        is_ambiguous = isinstance(error, AmbiguousConceptError)
        problem = Problem(
            error="ambiguous_concept" if is_ambiguous else "unknown_concept",
            message=str(error), field="wishes", candidates=error.candidates,
        )  # fmt: skip
        raise RefusedError(409 if is_ambiguous else 404, problem)
    if isinstance(error, ValueError):  # what a person can get wrong
        raise RefusedError(422, Problem(error="cannot_answer", message=str(error)))
    _LOG.error("a job failed", exc_info=error)
    raise RefusedError(500, INTERNAL)


def _late(seconds: float) -> RefusedError:
    return RefusedError(
        504,
        Problem(
            error="timeout",
            message=f"there was no answer within {seconds:g} s, the limit of this server; ask for "
            f"fewer new tokens, or again when fewer wait",
        ),
    )


def _problem_line(refused: RefusedError) -> bytes:
    return _line({
        "event": "problem", "status": refused.status, "problem": refused.problem.model_dump(),
    })  # fmt: skip


def _line(event: dict[str, object]) -> bytes:
    return as_json(event) + b"\n"


async def _gone(request: Request) -> None:
    """Returns when the client has left."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
