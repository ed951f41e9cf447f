"""A server with a socket, in a thread of this process, and requests of every kind."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.serving import Ask
from components.explaining.opened import Opened
from components.serving import server
from components.serving.app import application
from components.serving.config import ServeConfig
from tests.components.serving.asking import text

_WORDS = ("storm", "bread", "violin", "seven", "moss", "engine", "wind", "salt", "drum", "prime")


@contextmanager
def serving(opened: Opened, **changes: Any) -> Iterator[str]:
    """The address of a server that takes requests now."""
    with server_of(opened, **changes) as (_, address):
        yield address


@contextmanager
def server_of(opened: Opened, **changes: Any) -> Iterator[tuple[server.Server, str]]:
    """The same with the server itself; whoever ends it need not wait for it."""
    config = ServeConfig(**{"port": 0, **changes})
    made = application(opened, config)
    listener = server.listening(config)
    running = server.Server(made, config)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield running, f"http://127.0.0.1:{listener.getsockname()[1]}"
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
