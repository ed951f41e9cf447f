"""The application: routes over a network, behind guards, with figures for Prometheus.

POST /generate /explain /steer    JSON, or by block with ?stream=true
GET  /concepts                    names that fit a query
GET  /kept/NAME/FILE              explanations that were kept
GET  /healthz /metrics            for whoever runs it
GET  /                            the page for people, and /page/* its files
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.telemetry import TelemetryConfig
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp

from components.explaining.opened import Opened
from components.serving import bearer, routes
from components.serving.config import ServeConfig
from components.serving.guards import Guarded
from components.serving.keeping import Shelf
from components.serving.metrics import Measured, Metrics
from components.serving.network import work
from components.serving.problems import INTERNAL, REFUSED, Problem, RefusedError, as_response
from components.serving.queueing import Desk

_LOG = logging.getLogger(__name__)
_SHOWN_CHARS, _N_SEARCHES = 80, 2
_NO_TELEMETRY: TelemetryConfig = {
    "tracing": False, "metrics": False, "logs": False, "operation_spans": False,
    "auto_configure": False,
}  # fmt: skip
"""FastAPI's own would put prompts into the logs of whatever collects them."""


@dataclass(frozen=True)
class Application:
    """What a server runs, and the desk that it asks whether it may end."""

    asgi: ASGIApp
    desk: Desk
    metrics: Metrics


def application(opened: Opened, config: ServeConfig) -> Application:
    """Routes over a network. Raises ValueError for a token or a folder that cannot be used."""
    token = bearer.read(config.token_reference)
    shelf = Shelf(Path(config.keep)) if config.keep else None
    metrics = Metrics()
    desk = Desk(partial(work, opened), config, metrics)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        running = asyncio.create_task(desk.run())
        yield
        running.cancel()
        await asyncio.wait([running])
        if shelf is not None:
            shelf.close()

    app = FastAPI(
        title="Clearstory", summary="Text that explains itself, and concepts to steer it by.",
        version="1", docs_url=None, redoc_url=None, lifespan=lifespan, telemetry=_NO_TELEMETRY,
    )  # fmt: skip
    office = routes.Office(
        opened, config, desk, metrics, shelf, bool(token), asyncio.Semaphore(_N_SEARCHES)
    )
    app.include_router(routes.for_programs(office))
    app.include_router(routes.for_people(office))
    app.add_exception_handler(RefusedError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _failed)
    guarded = Guarded(app, config, token, lambda: desk.is_draining)
    return Application(Measured(guarded, metrics), desk, metrics)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    request.scope[REFUSED] = error.problem.error
    return error.response()


async def _invalid(request: Request, error: Exception) -> Response:
    """The first thing that is wrong with a request, by its place and with its value."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"][1:])
    if first["type"] == "json_invalid":
        field, said = "", f"the body is no JSON: {first['ctx']['error']} at character {field}"
    elif first["type"] == "value_error":  # ours: it says its value
        said = first["msg"].removeprefix("Value error, ")
    else:
        said = f"{first['msg']}; it is {_shown(first['input'])}"
    message = f"{field}: {said}" if field else said
    request.scope[REFUSED] = "invalid"
    problem = Problem(error="invalid", message=f"{message}. See /openapi.json", field=field)
    return as_response(422, problem)


async def _http(request: Request, error: Exception) -> Response:
    """What the framework refuses: no such route or method, a body that cannot be parsed."""
    assert isinstance(error, HTTPException)
    said = f"{request.method} {request.url.path[:_SHOWN_CHARS]}: {error.detail}"
    if error.status_code in (404, 405):
        routes_there = "POST /generate, /explain, /steer; GET /concepts"
        problem = Problem(error="no_route", message=f"{said}. There are {routes_there}")
    else:
        problem = Problem(error="invalid", message=f"{said}. See /openapi.json for what it takes")
    request.scope[REFUSED] = problem.error
    return as_response(error.status_code, problem, error.headers or {})


async def _failed(request: Request, error: Exception) -> Response:
    _LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
    request.scope[REFUSED] = INTERNAL.error
    return as_response(500, INTERNAL)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
