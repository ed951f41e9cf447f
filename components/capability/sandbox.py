"""Generated programs run in a child process that has nothing: see `components.capability.jail`.

No network (a network namespace of its own), an empty environment, an empty folder that is removed,
limits on CPU seconds, memory, file size, open files and processes, no rights of root, and the end
of its whole process group when its time is up. Where a machine does not allow this, nothing is run.

This keeps a program that was written by chance from doing harm. It is not a defence against one
that was written to break out: the file system can still be read as far as nobody may read it.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Literal

from components.capability.config import SandboxConfig

_JAIL = Path(__file__).with_name("jail.py")
_NOBODY = 65534
_MOST_ANSWER_BYTES = 4096
_PROBE = "import collections, math, re, typing\n"

Outcome = Literal["passed", "failed", "timed out"]


class SandboxError(RuntimeError):
    """This machine does not allow the isolation that generated programs need."""


def check(config: SandboxConfig) -> None:
    """Raise SandboxError unless a harmless program runs here, isolated."""
    if run(_PROBE, config) != "passed":
        raise SandboxError(
            f"a program that does nothing fails in the sandbox; its limits {config.model_dump()} "
            f"are too low for the interpreter, raise them"
        )


def run(program: str, config: SandboxConfig) -> Outcome:
    """Whether a program comes to its end without an error, within its limits."""
    token = secrets.token_hex()
    asked = _asked(program, token, config)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as answer:
        if os.geteuid() == 0:
            os.chown(folder, _NOBODY, _NOBODY)
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_JAIL)], stdin=subprocess.PIPE, stdout=answer,
            stderr=subprocess.DEVNULL, env={}, cwd=folder, start_new_session=True,
        )  # fmt: skip
        try:
            child.communicate(asked, timeout=config.wall_seconds)
            in_time = True
        except subprocess.TimeoutExpired:
            in_time = False
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
        answer.seek(0)
        said = answer.read(_MOST_ANSWER_BYTES).decode(errors="replace").splitlines()
    if said and said[0].startswith("refused: "):
        raise SandboxError(
            f"generated programs are not run: {said[0].removeprefix('refused: ')}. Allow this "
            f"process to make namespaces (as root, or unprivileged user namespaces), or leave "
            f"humaneval out"
        )
    if not in_time or child.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return "timed out"
    return "passed" if said == ["ready", token] and child.returncode == 0 else "failed"


def _asked(program: str, token: str, config: SandboxConfig) -> bytes:
    limits = config.model_dump(exclude={"wall_seconds"})
    return json.dumps({"limits": limits, "token": token, "program": program}).encode()
