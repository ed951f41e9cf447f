"""An OpenAI-compatible endpoint on this machine that answers by a script."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Body = dict[str, object]


@dataclass(frozen=True)
class Raw:
    """A reply to the byte: what servers send that break the protocol, or say more."""

    status: int
    payload: str
    headers: dict[str, str] = field(default_factory=dict)


Reply = tuple[int, str] | Raw
"""Status and, of status 200, the text of the answer."""


class Endpoint(ThreadingHTTPServer):
    """Remembers what it was asked; `reply` decides on (number of the request, its body)."""

    def __init__(self, reply: Callable[[int, Body], Reply]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.reply = reply
        self.asked: list[tuple[str, Body]] = []
        self.lock = threading.Lock()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that gave up waiting is no news."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with self.server.lock:
            self.server.asked.append((self.path, body))
            number = len(self.server.asked)
        reply = self.server.reply(number, body)
        said = reply if isinstance(reply, Raw) else _completion(*reply)
        self.send_response(said.status)
        self.send_header("content-type", "application/json")
        for name, value in said.headers.items():
            self.send_header(name, value)
        payload = said.payload.encode()
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format: str, *args: object) -> None:
        pass


def _completion(status: int, text: str) -> Raw:
    answer = {
        "id": "1", "object": "x", "created": 0, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "text": text,
                     "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9},
    }  # fmt: skip
    return Raw(status, json.dumps(answer if status == 200 else {"error": {"message": text}}))


@contextmanager
def serving(reply: Callable[[int, Body], Reply]) -> Iterator[Endpoint]:
    """The endpoint, while the context lasts."""
    with Endpoint(reply) as endpoint:
        thread = threading.Thread(target=endpoint.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield endpoint
        finally:
            endpoint.shutdown()
            thread.join()
