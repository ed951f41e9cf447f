"""MLflow's UI on the runs of a folder."""

import os
import socket
import subprocess
import sys

_ENVIRONMENT = {
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}
"""The server starts in seconds without its job runner, and calls nobody."""


def require_free(host: str, port: int, command: str = "ui") -> None:
    """Raise ValueError, with a port to try, where another program has this one."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except socket.gaierror as error:
            raise ValueError(
                f"{host} is no address of this machine ({error.strerror}); give one that it has, "
                f"such as 127.0.0.1"
            ) from error
        except OSError as error:
            raise ValueError(
                f"Port {port} on {host} cannot be used ({error.strerror}); another program has it. "
                f"Try: clearstory {command} --port {port + 1}"
            ) from error


def serve(uri: str, host: str, port: int) -> int:
    """Serve the UI of a store until it is stopped; returns the server's exit code."""
    command = [
        sys.executable, "-m", "mlflow", "server", "--backend-store-uri", uri, "--host", host,
        "--port", str(port), "--workers", "1",
    ]  # fmt: skip
    return subprocess.call(command, env={**os.environ, **_ENVIRONMENT})
