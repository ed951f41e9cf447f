"""Every route: what it takes, what it answers, and where it is refused."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from components.explaining.opened import Opened, find_concepts
from components.explaining.requests import GenerateRequest
from components.explaining.schema import Explanation, Generation, Steered
from components.serving import limits
from components.serving.answering import answered, lines, streamed
from components.serving.config import ServeConfig
from components.serving.keeping import ANSWER, PAGE, Shelf
from components.serving.metrics import Metrics
from components.serving.network import loaded, page_of
from components.serving.problems import Problem, RefusedError
from components.serving.queueing import Desk
from components.serving.schema import (
    Answer,
    Asked,
    ConceptsFound,
    ExplainRequest,
    Health,
    SteerRequest,
)
from components.serving.static import INDEX, page_files

_REFUSALS: dict[int | str, dict[str, object]] = {
    status: {"model": Problem} for status in (401, 404, 409, 413, 422, 429, 503, 504)
}
_JSON, _NDJSON = "application/json", "application/x-ndjson"
_QUERY_CHARS = 200
_STANDALONE = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
"""For kept pages: their style stands inside, and they have no script at all."""

Stream = Annotated[bool, Query(description="NDJSON: the text by block, then the answer.")]


@dataclass(frozen=True)
class Office:
    """All that routes work with."""

    opened: Opened
    config: ServeConfig
    desk: Desk
    metrics: Metrics
    shelf: Shelf | None
    """None: nothing is kept."""

    asks_for_token: bool
    searching: asyncio.Semaphore
    """Searches that run at once: over a large library each takes a core for a while."""


def for_programs(office: Office) -> APIRouter:
    """The interface: OpenAPI describes it."""
    router = APIRouter()

    @router.post("/generate", responses={200: {"model": Generation}, **_REFUSALS})
    async def generate(
        request: Request, asked: GenerateRequest, stream: Stream = False
    ) -> Response:
        """Continue a text."""
        return await _answer(request, asked, office, is_streamed=stream)

    @router.post("/explain", responses={200: {"model": Explanation}, **_REFUSALS})
    async def explain(request: Request, asked: ExplainRequest, stream: Stream = False) -> Response:
        """Continue a text and say, chunk by chunk, what stands behind it."""
        return await _answer(request, asked, office, is_streamed=stream)

    @router.post("/steer", responses={200: {"model": Steered}, **_REFUSALS})
    async def steer(request: Request, asked: SteerRequest, stream: Stream = False) -> Response:
        """Continue a text as it comes and with concepts changed: what differs, what it costs."""
        return await _answer(request, asked, office, is_streamed=stream)

    @router.get("/concepts", response_model=ConceptsFound, responses=_REFUSALS)
    async def concepts(
        q: Annotated[str, Query(max_length=_QUERY_CHARS)] = "",
        limit: Annotated[int, Query(ge=1, le=200)] = 20,
    ) -> ConceptsFound:
        """Concepts whose names are like `q`; all, from the first, for an empty one."""
        async with office.searching:
            found = await asyncio.to_thread(find_concepts, office.opened, q, limit)
        return ConceptsFound(query=q, concepts=tuple(found))

    @router.get("/healthz", responses={200: {"model": Health}, 503: {"model": Health}})
    async def healthz() -> Response:
        """What is loaded, and whether requests are taken."""
        health = _health(office)
        status = 200 if health.is_ready else 503
        return Response(health.model_dump_json(), status, media_type=_JSON)

    @router.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Figures for Prometheus."""
        return Response(
            office.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    return router


def for_people(office: Office) -> APIRouter:
    """The page, its files, and pages that were kept."""
    router, files = APIRouter(include_in_schema=False), page_files()

    @router.get("/")
    async def index() -> Response:
        return Response(files[INDEX].content, media_type=files[INDEX].media_type)

    @router.get("/page/{name}")
    async def page_file(name: str) -> Response:
        if name not in files:
            raise _missing(f"the page has no file {name[:_QUERY_CHARS]!r}")
        return Response(files[name].content, media_type=files[name].media_type)

    @router.get("/kept/{name}/{file}")
    async def kept(name: str, file: str) -> Response:
        found = None if office.shelf is None else office.shelf.read(name, file)
        if found is None:
            raise _missing(f"nothing is kept as {name[:_QUERY_CHARS]!r}, {file[:_QUERY_CHARS]!r}")
        if file == ANSWER:
            return Response(found, media_type=_JSON)
        headers = {"Content-Security-Policy": _STANDALONE}
        return Response(found, media_type="text/html; charset=utf-8", headers=headers)

    return router


async def _answer(request: Request, asked: Asked, office: Office, *, is_streamed: bool) -> Response:
    allowed = office.config.limits
    limits.check(asked, allowed)
    if is_streamed:
        under_way = streamed(asked, office.desk)
        body = lines(under_way, office.desk, allowed.answer_seconds, _last_line(office))
        return StreamingResponse(body, media_type=_NDJSON)
    answer = await answered(request, asked, office.desk, allowed.answer_seconds)
    text, name = await _finished(answer, office)
    headers = {"Content-Location": f"/kept/{name}/{ANSWER}"} if name else {}
    return Response(text, media_type=_JSON, headers=headers)


async def _finished(answer: Answer, office: Office) -> tuple[bytes, str]:
    """An answer as JSON, and the name it is kept under; an empty one where it is not."""
    text = answer.model_dump_json().encode()
    office.metrics.tokens.inc(_n_generated(answer))
    if office.shelf is None or isinstance(answer, Generation):
        return text, ""
    files = {ANSWER: text, PAGE: page_of(answer).encode()}
    return text, await asyncio.to_thread(office.shelf.keep, files)


def _last_line(office: Office) -> Callable[[Answer], Awaitable[bytes]]:
    """The end of a stream: {"event": "answer", "kept": name, "answer": …}."""

    async def line(answer: Answer) -> bytes:
        text, name = await _finished(answer, office)
        return b'{"event":"answer","kept":"%b","answer":%b}\n' % (name.encode(), text)

    return line


def _n_generated(answer: Answer) -> int:
    if isinstance(answer, Generation):
        return len(answer.tokens)
    if isinstance(answer, Explanation):
        return len(answer.generation.tokens)
    return _n_generated(answer.before) + _n_generated(answer.after)


def _health(office: Office) -> Health:
    return Health(
        is_ready=not office.desk.is_draining,
        loaded=loaded(office.opened),
        limits=office.config.limits,
        n_waiting=office.desk.n_waiting,
        n_running=office.desk.n_running,
        asks_for_token=office.asks_for_token,
        keeps=office.shelf is not None,
    )


def _missing(message: str) -> RefusedError:
    return RefusedError(404, Problem(error="missing", message=message))
