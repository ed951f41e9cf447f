"""What stands before every route: which requests come in, and which headers go out.

    hosts    a foreign Host header is refused, so that no page elsewhere can be pointed here
    token    everything but the page, its files and /healthz asks for it where there is one
    drain    while the server ends, new work is refused
    body     read here, to its limit and no further, before anything looks at it

Headers: nothing may be framed, sniffed or loaded from elsewhere, and no script stands in a page.
There is no CORS header, so another site's page cannot read an answer.
"""

import asyncio
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from components.serving import bearer
from components.serving.config import ServeConfig
from components.serving.problems import REFUSED, Problem, RefusedError

_OPEN = ("/", "/healthz", "/openapi.json")
_OPEN_BELOW = "/page/"

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
"""An answer may set its own: what stands in it already is left as it is."""


class Guarded:
    """An application behind the guards."""

    def __init__(
        self, app: ASGIApp, config: ServeConfig, token: bytes, is_draining: Callable[[], bool]
    ) -> None:
        self._app, self._config, self._token = app, config, token
        self._is_draining = is_draining

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        send = _with_headers(send)
        try:
            self._admit(Request(scope))
            receive = await self._with_body(scope, receive)
        except RefusedError as refused:
            scope[REFUSED] = refused.problem.error
            await refused.response()(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _admit(self, request: Request) -> None:
        host = _host_of(request.headers)
        if "*" not in self._config.hosts and host not in self._config.hosts:
            raise _refused(
                421, "foreign_host",
                f"this server is not called {host!r}; call it {' or '.join(self._config.hosts)}, "
                f"or start it with --allow-host {host}",
            )  # fmt: skip
        path = request.url.path
        is_open = path in _OPEN or path.startswith(_OPEN_BELOW)
        given = request.headers.get("authorization", "")
        if self._token and not is_open and not bearer.grants(self._token, given):
            raise RefusedError(
                401,
                Problem(
                    error="wrong_token",
                    message="this server asks for its token, and the request has "
                    + ("another one" if given else "none")
                    + "; send the header Authorization: Bearer TOKEN",
                ),
                {"WWW-Authenticate": "Bearer"},
            )
        if self._is_draining() and request.method == "POST":
            raise RefusedError(
                503,
                Problem(error="ending", message="the server is ending; ask another, or later"),
                {"Retry-After": "5", "Connection": "close"},
            )

    async def _with_body(self, scope: Scope, receive: Receive) -> Receive:
        """A channel that gives the whole body at once, then whatever comes after it."""
        limits = self._config.limits
        said = Headers(scope=scope).get("content-length", "0")
        if not said.isdigit() or int(said) > limits.body_bytes:
            raise _too_large(said, limits.body_bytes)
        try:
            async with asyncio.timeout(limits.body_seconds):
                body = await _whole(receive, limits.body_bytes)
        except TimeoutError as late:
            raise _refused(
                408, "slow_body",
                f"the body has not arrived within {limits.body_seconds:g} s; send it at once",
            ) from late  # fmt: skip
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replayed() -> Message:
            return waiting.pop() if waiting else await receive()

        return replayed


async def _whole(receive: Receive, limit: int) -> bytes:
    parts, n_bytes, is_more = [], 0, True
    while is_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _refused(400, "gone", "the client went before its request was whole")
        part = message.get("body", b"")
        n_bytes += len(part)
        if n_bytes > limit:
            raise _too_large(f"{n_bytes} or more", limit)
        parts.append(part)
        is_more = message.get("more_body", False)
    return b"".join(parts)


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sent


def _host_of(headers: Headers) -> str:
    """The Host header without its port; an IPv6 address without its brackets."""
    host = headers.get("host", "")
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


def _too_large(said: str, limit: int) -> RefusedError:
    return RefusedError(
        413,
        Problem(
            error="body_too_large",
            message=f"the body has {said} bytes, and the limit is {limit}; send a shorter prompt",
        ),
        {"Connection": "close"},
    )


def _refused(status: int, error: str, message: str) -> RefusedError:
    return RefusedError(status, Problem(error=error, message=message))
