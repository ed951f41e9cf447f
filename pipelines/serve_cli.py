"""`clearstory serve`: explanations for programs, and a page for people."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from components.serving.config import LOOPBACK, ServeConfig
from pipelines.earlier import RunsOption
from pipelines.exits import guarded
from pipelines.explain_cli import (
    CalibrationOption,
    ChatOption,
    CheckpointOption,
    IndexOption,
    NamesOption,
)
from pipelines.explain_source import Named, artifacts
from pipelines.ui import require_free

if TYPE_CHECKING:  # torch takes seconds to import
    from components.serving.app import Application

_ANY = "*"


def serve(
    checkpoint: CheckpointOption = "",
    index: IndexOption = None,
    names: NamesOption = None,
    calibration: CalibrationOption = None,
    chat: ChatOption = False,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; 0.0.0.0: from everywhere.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65_535, help="0: a free one.")] = 8000,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", help="A name it may be called by; * for any. Repeat it."),
    ] = None,
    token_file: Annotated[
        str, typer.Option("--token-file", help="A file whose token every request must carry.")
    ] = "",
    token_variable: Annotated[
        str, typer.Option("--token-variable", help="The same, from an environment variable.")
    ] = "",
    keep: Annotated[
        str, typer.Option("--keep", metavar="FOLDER", help="Keep explanations there.")
    ] = "",
    queue: Annotated[int, typer.Option("--queue", min=1, help="Requests that may wait.")] = 64,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Most that run together.")] = 16,
    runs: RunsOption = Path("runs"),
) -> None:
    """Serve a checkpoint over HTTP, with a page at /.  Example: clearstory serve --port 8001

    Without --checkpoint: the newest run's, with its index. docs/serve.md has limits and figures.
    """
    reference = guarded(lambda: _reference(token_file, token_variable))
    config = ServeConfig(
        host=host, port=port, hosts=(*LOOPBACK, host, *(allow_host or [])), keep=keep,
        token_reference=reference, queue_length=queue, batch_size=batch,
    )  # fmt: skip
    guarded(lambda: require_free(host, port, "serve"))
    named = Named(checkpoint, index, names, calibration, runs)
    application = guarded(lambda: _application(named, config, is_chat=chat))
    from components.serving import server

    listener = server.listening(config)
    print(_told(config, listener.getsockname()[1]), flush=True)
    is_work_left = server.run(application, config, listener)
    print("ended; what was kept is whole", flush=True)
    if is_work_left:
        os._exit(0)  # the interpreter would wait for the thread that nobody waits for


def _application(named: Named, config: ServeConfig, *, is_chat: bool) -> "Application":
    at = artifacts(named, is_chat=is_chat)
    from components.explaining.opened import open_checkpoint
    from components.serving.app import application

    opened = open_checkpoint(
        at.checkpoint, index=at.index, names=at.names, calibration=at.calibration
    )
    return application(opened, config)


def _reference(file: str, variable: str) -> str:
    if file and variable:
        raise ValueError("give either --token-file or --token-variable, not both")
    return f"file:{file}" if file else f"env:{variable}" if variable else ""


def _told(config: ServeConfig, port: int) -> str:
    """Where it is, how to end it, and what to mind."""
    at = f"[{config.host}]" if ":" in config.host else config.host
    lines = [f"Clearstory at http://{at}:{port} (Ctrl-C ends it)"]
    if config.keep:
        lines.append(f"  keeps explanations in {Path(config.keep).resolve()}")
    if config.host not in LOOPBACK and not config.token_reference:
        lines.append("  anyone who reaches this address can use it; --token-file asks for a token")
    if _ANY in config.hosts:
        lines.append("  it answers to any name; let a proxy check the Host header")
    return "\n".join(lines)
