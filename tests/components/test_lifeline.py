"""Whoever is killed outright leaves nobody behind."""

import os
import signal
import threading
from multiprocessing import get_context

import psutil

from components import lifeline


def _follow_forever() -> None:
    lifeline.follow(lifeline.LAUNCHER_PID, lifeline.end_at_once)
    threading.Event().wait()


def _start_another(connection) -> None:
    os.environ[lifeline.LAUNCHER_PID] = str(os.getpid())
    child = get_context("fork").Process(target=_follow_forever)
    child.start()
    connection.send(child.pid)
    threading.Event().wait()


def test_a_process_ends_when_the_one_it_follows_is_killed():
    here, there = get_context("fork").Pipe()
    parent = get_context("fork").Process(target=_start_another, args=(there,))
    parent.start()
    child = psutil.Process(here.recv())
    os.kill(parent.pid, signal.SIGKILL)
    parent.join()
    _, alive = psutil.wait_procs([child], timeout=20)
    assert not alive


def test_nobody_is_followed_where_nobody_is_named(monkeypatch):
    monkeypatch.delenv(lifeline.RUN_PID, raising=False)
    before = threading.active_count()
    lifeline.follow(lifeline.RUN_PID, lifeline.end_at_once)
    assert threading.active_count() == before
