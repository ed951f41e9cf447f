"""Run one untrusted program, after giving up all that it does not need. A script of its own.

Started by `components.capability.sandbox` with the standard library alone, an empty environment and
an empty folder. It reads a JSON object from standard input (`limits`, `token`, `program`) and
answers on standard output, a file:

    refused: WHY    an isolation this machine does not allow; the program was not run
    ready           isolated
    TOKEN           the program came to its end without an error
"""

import ctypes
import importlib
import json
import os
import resource
import sys

_CLONE_NEWUSER, _CLONE_NEWNET, _CLONE_NEWIPC = 0x10000000, 0x40000000, 0x08000000
_PR_SET_NO_NEW_PRIVS = 38
_NOBODY = 65534

_MODULES = [
    "bisect", "collections", "copy", "datetime", "decimal", "fractions", "functools", "hashlib",
    "heapq", "itertools", "math", "numbers", "operator", "random", "re", "socket", "statistics",
    "string", "textwrap", "threading", "types", "typing",
]  # fmt: skip
"""Imported before rights are given up: the interpreter may lie where nobody else can read. Other
modules of the standard library can be had where everybody can read it."""


def main() -> int:
    """Exit status 0 if the program came to its end."""
    asked = json.loads(sys.stdin.buffer.read())
    for name in _MODULES:
        importlib.import_module(name)
    answer = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    try:
        _isolate()
        _limit(asked["limits"])
    except OSError as error:
        os.write(answer, f"refused: {error}\n".encode())
        return 1
    os.write(answer, b"ready\n")
    try:
        exec(compile(asked["program"], "program.py", "exec"), {"__name__": "__main__"})
    except BaseException:  # noqa: BLE001 whatever ends the program early, SystemExit too, fails it
        return 1
    os.write(answer, f"{asked['token']}\n".encode())
    return 0


def _isolate() -> None:
    """No network, no shared memory of others, no way to more rights; nobody instead of root."""
    libc = ctypes.CDLL(None, use_errno=True)
    root = os.geteuid() == 0
    wanted = _CLONE_NEWNET | _CLONE_NEWIPC | (0 if root else _CLONE_NEWUSER)
    if libc.unshare(wanted) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"no network namespace: {os.strerror(number)}")
    if root:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "new privileges cannot be ruled out")


def _limit(limits: dict[str, int]) -> None:
    # One second between the signal that ends the program and the one that it cannot handle.
    seconds = limits["cpu_seconds"]
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    for kind, most in (
        (resource.RLIMIT_AS, limits["memory_bytes"]),
        (resource.RLIMIT_FSIZE, limits["file_bytes"]),
        (resource.RLIMIT_NOFILE, limits["open_files"]),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    sys.exit(main())
