"""What a generated program cannot do (issue: the parent never runs it)."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from components.capability import sandbox
from components.capability.config import SandboxConfig

CONFIG = SandboxConfig(cpu_seconds=1, wall_seconds=5, file_bytes=100_000)


@pytest.fixture(autouse=True)
def _isolation() -> None:
    try:
        sandbox.check(CONFIG)
    except sandbox.SandboxError as error:
        pytest.skip(str(error))


FAILS = {
    "an error": "assert 1 == 2",
    "leaving early": "import sys; sys.exit(0)",
    "leaving early without cleaning up": "import os; os._exit(0)",
    "bad syntax": "def f(:",
    "the network": "import socket; socket.socket().connect(('127.0.0.1', {port}))",
    "another process": "import os; os.fork() or os._exit(0); os.wait()",
    "a thread": "import threading; threading.Thread(target=print).start()",
    "memory": "x = bytearray(2_000_000_000)",
    "a large file": "open('x', 'wb').write(bytes(200_000))",
    "many files": "files = [open('/dev/null') for _ in range(50)]",
    "the environment": "import os; os.environ['PATH']",
    "packages of the parent": "import torch",
    "the rights of root": "import os; os.setuid(0); open('/root/written', 'w')",
}


def test_a_harmless_program_passes_and_may_write_to_its_folder():
    assert sandbox.run("open('x', 'w').write('y'); assert open('x').read() == 'y'", CONFIG) == (
        "passed"
    )


@pytest.mark.parametrize("what", FAILS)
@pytest.mark.slow
def test_a_program_cannot_have(what: str):
    with socket.create_server(("127.0.0.1", 0)) as server:
        program = FAILS[what].replace("{port}", str(server.getsockname()[1]))
        assert sandbox.run(program, CONFIG) == "failed"
    assert not Path("/root/written").exists()


@pytest.mark.slow
def test_time_of_both_kinds_is_limited_and_nothing_is_left_running():
    assert sandbox.run("while True: pass", CONFIG) == "timed out"
    brief = SandboxConfig(wall_seconds=0.5)
    assert sandbox.run("import time; time.sleep(60)", brief) == "timed out"
    left = subprocess.run(["pgrep", "-f", "components/capability/jail.py"], capture_output=True)
    assert str(os.getpid()) not in left.stdout.decode().split()
    assert left.stdout == b""


def test_a_machine_that_refuses_runs_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    ran = tmp_path / "ran"
    jail = tmp_path / "jail.py"
    text = sandbox._JAIL.read_text()
    assert text.count("libc.unshare(wanted)") == 1
    jail.write_text(text.replace("libc.unshare(wanted)", "libc.unshare(-1)"))
    monkeypatch.setattr(sandbox, "_JAIL", jail)
    with pytest.raises(sandbox.SandboxError, match="no network namespace: Invalid argument"):
        sandbox.run(f"open({str(ran)!r}, 'w')", CONFIG)
    assert not ran.exists()
