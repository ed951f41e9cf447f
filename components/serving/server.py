"""The process: one socket, and an end that loses nothing.

On SIGTERM or SIGINT the server refuses new work with 503, lets what waits and runs come to its end
within `shutdown_seconds`, and then goes. A second signal ends it at once: whoever still waits is
told so with 503.
"""

import socket
import time
from types import FrameType

import uvicorn

from components.serving.app import Application
from components.serving.config import ServeConfig

_SPARE_CONNECTIONS = 64
"""Beyond those whose requests wait or run: searches, figures, the page."""

_LAST_SECONDS = 2
"""For bytes on their way, once the work is done."""


class Server(uvicorn.Server):
    """uvicorn, which ends when the desk has nothing left to do."""

    def __init__(self, application: Application, config: ServeConfig) -> None:
        self._desk, self._seconds = application.desk, config.shutdown_seconds
        self._ends = 0.0
        super().__init__(
            uvicorn.Config(
                application.asgi, host=config.host, port=config.port, log_level="warning",
                access_log=False, server_header=False, ws="none", lifespan="on",
                limit_concurrency=config.queue_length + config.batch_size + _SPARE_CONNECTIONS,
                timeout_graceful_shutdown=_LAST_SECONDS,
            )
        )  # fmt: skip

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Let no one in; a second signal, or the time that was given, ends the rest."""
        if self._desk.is_draining:
            self._ends = 0.0
            return
        self._desk.is_draining = True
        self._ends = time.monotonic() + self._seconds

    async def on_tick(self, counter: int) -> bool:
        """Whether it is time to go: asked by uvicorn ten times a second."""
        ended = await super().on_tick(counter)
        if not self._desk.is_draining:
            return ended
        is_idle = self._desk.n_waiting == 0 and self._desk.n_running == 0
        is_late = time.monotonic() > self._ends
        if is_late:
            self._desk.give_up()
        return ended or is_idle or is_late


def listening(config: ServeConfig) -> socket.socket:
    """A socket that listens where the config says: whoever comes before it is served waits."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((config.host, config.port))
    listener.listen()
    return listener


def run(application: Application, config: ServeConfig, listener: socket.socket) -> bool:
    """Serve until a signal ends it. Returns whether work is left that nobody waits for."""
    Server(application, config).run(sockets=[listener])
    return application.desk.n_running > 0
