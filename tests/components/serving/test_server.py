"""A server that is told to end lets no one in, finishes what runs, and is gone in time."""

import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx2 as httpx

from components.explaining.opened import Opened
from components.serving import server
from components.serving.app import application
from components.serving.config import ServeConfig
from tests.components.serving.asking import text
from tests.components.serving.held import held
from tests.components.serving.served import server_of


def test_told_to_end_it_refuses_new_work_and_finishes_what_runs(opened: Opened) -> None:
    with (
        held(opened) as brake,
        server_of(opened) as (running, address),
        httpx.Client(base_url=address, timeout=30) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        first = pool.submit(httpx.post, f"{address}/generate", json=text(n_new=9), timeout=30)
        assert brake.has_begun.wait(10)
        running.handle_exit(signal.SIGTERM, None)
        refused = client.post("/generate", json=text())
        assert (refused.status_code, refused.json()["error"]) == (503, "ending")
        assert client.get("/healthz").status_code == 503
        brake.may_go_on.set()
        answer = first.result()
    assert answer.status_code == 200
    assert len(answer.json()["tokens"]) == 9


def test_told_twice_it_ends_before_the_work_does_and_says_so_to_who_waits(opened: Opened) -> None:
    with (
        held(opened) as brake,
        server_of(opened) as (running, address),
        ThreadPoolExecutor(2) as pool,
    ):
        asked = [
            pool.submit(httpx.post, f"{address}/generate", json=text(n_new=n), timeout=30)
            for n in (9, 8)
        ]
        assert brake.has_begun.wait(10)
        running.handle_exit(signal.SIGTERM, None)
        running.handle_exit(signal.SIGTERM, None)
        answers = [one.result() for one in asked]
        brake.may_go_on.set()
    assert [(one.status_code, one.json()["error"]) for one in answers] == 2 * [(503, "ending")]


def test_whoever_comes_before_it_serves_is_answered(opened: Opened) -> None:
    config = ServeConfig(port=0)
    listener = server.listening(config)
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with listener, ThreadPoolExecutor(1) as pool:
        early = pool.submit(httpx.get, f"{address}/healthz", timeout=30)
        running = server.Server(application(opened, config), config)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
        thread.start()
        assert early.result().status_code == 200
        running.handle_exit(signal.SIGTERM, None)
        thread.join(10)
        assert not thread.is_alive()
