"""`clearstory serve` says where it is, ends when told, and refuses what it cannot do."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2 as httpx
import pytest
from typer.testing import CliRunner

from pipelines.cli import app
from tests.components.explained_run import write_run


def refusal(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["serve", *arguments])
    assert result.exit_code == 2, result.output
    return result.output


def test_busy_port_is_refused_with_another_to_try() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        said = refusal("--port", str(port))
    assert f"Port {port} on 127.0.0.1" in said
    assert f"clearstory serve --port {port + 1}" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--checkpoint", "/not/there"], "no"),
        (["--token-file", "/not/there", "--checkpoint", "CHECKPOINT"], "cannot be read"),
        (["--token-file", "a", "--token-variable", "b"], "not both"),
        (["--keep", "/dev/null/kept", "--checkpoint", "CHECKPOINT"], "cannot be kept"),
        (["--runs", "/not/there"], "There are no runs"),
        (["--host", "999.1.1.1"], "999.1.1.1 is no address of this machine"),
    ],
)
def test_bad_input_is_refused_before_anything_listens(
    arguments: list[str], said: str, checkpoint: Path
) -> None:
    given = [str(checkpoint) if word == "CHECKPOINT" else word for word in arguments]
    assert said in refusal("--port", "0", *given)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run")).checkpoint


@pytest.mark.slow
def test_served_process_answers_and_ends_on_sigterm(checkpoint: Path) -> None:
    command = [
        sys.executable, "-m", "pipelines.cli", "serve", "--checkpoint", str(checkpoint),
        "--port", "0",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[2]
        assert httpx.get(f"{address}/healthz").json()["is_ready"]
        process.send_signal(signal.SIGTERM)
        assert "ended" in process.stdout.read()
    assert process.returncode == 0
