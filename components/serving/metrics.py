"""What Prometheus reads at /metrics, and the clock that stands around every request."""

import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from components.serving.problems import REFUSED

_SECONDS = (0.005, 0.02, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_ROWS = (1, 2, 4, 8, 16, 32, 64)
NO_ROUTE = "none"


class Metrics:
    """The figures of one server. Each server has its own registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

        def named(name: str) -> str:
            return f"clearstory_{name}"

        self.requests = Counter(
            named("requests"), "Requests answered.", ["route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            named("request_seconds"), "Seconds from a request to the end of its answer.",
            ["route"], buckets=_SECONDS, registry=self.registry,
        )  # fmt: skip
        self.rejected = Counter(
            named("rejected"), "Requests refused, by the reason.", ["reason"],
            registry=self.registry,
        )  # fmt: skip
        self.abandoned = Counter(
            named("abandoned"), "Jobs whose client left or whose time was over, by the reason.",
            ["reason"], registry=self.registry,
        )  # fmt: skip
        self.waiting = Gauge(
            named("queue_depth"), "Jobs that wait for the network.", registry=self.registry
        )
        self.running = Gauge(named("running"), "Jobs the network works on.", registry=self.registry)
        self.batch_rows = Histogram(
            named("batch_rows"), "Jobs that ran together.", buckets=_ROWS, registry=self.registry
        )
        self.tokens = Counter(
            named("generated_tokens"), "Tokens generated; their rate is tokens a second.",
            registry=self.registry,
        )  # fmt: skip
        self.busy = Counter(
            named("busy_seconds"), "Seconds the network worked.", registry=self.registry
        )

    def text(self) -> bytes:
        """All figures in Prometheus' format."""
        return generate_latest(self.registry)


class Measured:
    """An application whose requests are counted and timed, by route and status."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on. A route is its template: no client can make labels."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 500

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, counted)
        finally:
            route = scope["route"].path if "route" in scope else NO_ROUTE
            self._metrics.requests.labels(route, str(status)).inc()
            self._metrics.seconds.labels(route).observe(time.monotonic() - began)
            if REFUSED in scope:
                self._metrics.rejected.labels(scope[REFUSED]).inc()
