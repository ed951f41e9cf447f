"""Clients of a server under test: in this process, and with full control of what is received."""

import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from starlette.testclient import TestClient

from components.explaining.opened import Opened
from components.serving.app import application
from components.serving.config import ServeConfig

PROMPT = "the storm was there and then"


def config(**changes: Any) -> ServeConfig:
    """A server for tests: called as Starlette's client calls it, and never waiting for company."""
    return ServeConfig(**{"hosts": ("testserver",), "batch_wait_seconds": 0.0, **changes})


@contextmanager
def client(opened: Opened, **changes: Any) -> Iterator[TestClient]:
    """A client of a server that runs in this process."""
    app = application(opened, config(**changes)).asgi
    with TestClient(app, raise_server_exceptions=False) as running:
        yield running


def text(prompt: str = PROMPT, n_new: int = 5, **sampling: Any) -> dict[str, Any]:
    """The body of /generate."""
    return {"prompt": prompt, "sampling": {"n_new": n_new, **sampling}}


def scope(path: str, body: bytes) -> dict[str, Any]:
    """An ASGI request, to be called without a client in between."""
    return {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1",
        "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
        "root_path": "", "scheme": "http", "server": ("testserver", 80), "client": ("c", 1),
        "headers": [
            (b"host", b"testserver"), (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ],
    }  # fmt: skip


async def called(
    app: Any, request: dict[str, Any], receive: Callable[[], Awaitable[dict[str, Any]]]
) -> tuple[int, dict[str, Any]]:
    """Status and problem that an application answers when it is called directly."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(request, receive, send)
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], json.loads(body or b"{}")
