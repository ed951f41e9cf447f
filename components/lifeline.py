"""A process that ends when another one does: nobody's ranks go on alone.

Whoever is killed outright (SIGKILL, out of memory) cannot stop what it started, so the children
watch. `psutil` waits for a process that is not our child, on every platform; the kernel's own
death signal follows the thread that forked, which torchrun does not promise to keep.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable

import psutil

RUN_PID = "CLEARSTORY_RUN_PID"
"""Environment: the process of the command, which tasks follow."""

LAUNCHER_PID = "CLEARSTORY_LAUNCHER_PID"
"""Environment: the process that started the ranks, which they follow."""


def follow(name: str, then: Callable[[], None]) -> None:
    """Do `then`, in a thread, when the process named by this variable is gone; unset: nothing."""
    if name in os.environ:
        follow_process(int(os.environ[name]), then)


def follow_process(pid: int, then: Callable[[], None]) -> None:
    """Do `then`, in a thread, when this process is gone."""
    threading.Thread(target=_wait, args=(pid, then), daemon=True).start()


def end_at_once() -> None:
    """Leave without cleaning up: whoever would read the result is gone."""
    os._exit(1)


def ask_to_stop() -> None:
    """What Ctrl-C would do."""
    os.kill(os.getpid(), signal.SIGTERM)


def interrupt_once() -> None:
    """SIGTERM and Ctrl-C end the stage alike, and a second one does not disturb the cleaning up."""

    def stop(signum: int, frame: object) -> None:
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, signal.SIG_IGN)
        raise KeyboardInterrupt(signal.Signals(signum).name)

    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, stop)


def _wait(pid: int, then: Callable[[], None]) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(pid).wait()
    then()
