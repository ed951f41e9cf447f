"""A server with a socket, in a thread of this process, and many clients at once."""

import json
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx2 as httpx

from components.explaining.opened import Opened
from components.serving import server
from components.serving.app import application
from components.serving.config import ServeConfig
from tests.components.serving.asking import text

Ask = tuple[str, dict[str, Any]]
"""Path and body."""

_WORDS = ("storm", "bread", "violin", "seven", "moss", "engine", "wind", "salt", "drum", "prime")


@contextmanager
def serving(opened: Opened, **changes: Any) -> Iterator[str]:
    """The address of a server that takes requests now."""
    config = ServeConfig(**{"port": 0, **changes})
    made = application(opened, config)
    listener = server.listening(config)
    running = server.Server(made, config)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        running.should_exit = True
        thread.join()
        listener.close()


def mixed(n: int) -> list[Ask]:
    """Requests of every kind: no two alike, some that share batches, one in eight streamed."""
    asked: list[Ask] = []
    for number in range(n):
        first, second = _WORDS[number % 10], _WORDS[number // 10 % 10]
        prompt = f"the {first} and the {second} " + "there " * (number % 7)
        generation = text(prompt + str(number), n_new=3 + 4 * (number % 3))
        if number % 5 == 1:
            generation["sampling"].update({"temperature": 0.9, "seed": number})
        options = {"input_targets": 1, "evaluations": 3, "draws": 5}
        wish = {"concept": str(number % 6), "action": "amplify", "strength_logits": 6}
        if number % 8 == 2:
            asked.append(("/explain", {"request": generation, "options": options}))
        elif number % 8 == 5 and number % 10 < 6:
            body = {"request": generation, "wishes": [wish], "options": options}
            asked.append(("/steer", body))
        else:
            asked.append(("/generate?stream=true" if number % 8 == 7 else "/generate", generation))
    return asked


def answers(address: str, asked: Sequence[Ask], n_clients: int) -> list[Any]:
    """What clients that ask at the same time are answered, in the order of the requests."""
    turns = [asked[client::n_clients] for client in range(n_clients)]
    with ThreadPoolExecutor(n_clients) as pool:
        told = list(pool.map(lambda turn: _asked_in_turn(address, turn), turns))
    return [told[number % n_clients][number // n_clients] for number in range(len(asked))]


def _asked_in_turn(address: str, asked: Sequence[Ask]) -> list[Any]:
    with httpx.Client(base_url=address, timeout=120) as client:
        return [_answer(client.post(path, json=body)) for path, body in asked]


def _answer(response: httpx.Response) -> Any:
    assert response.status_code == 200, response.text
    if response.headers["content-type"] == "application/x-ndjson":
        return json.loads(response.text.splitlines()[-1])["answer"]
    return response.json()


def rounded(value: Any) -> Any:
    """An answer to four digits: a batch adds its floats in another order."""
    if isinstance(value, float):
        return float(f"{value:.4g}") if abs(value) > 1e-3 else 0.0
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    return [rounded(inner) for inner in value] if isinstance(value, list) else value
