"""Many clients at one server: errors, cross-talk, latency, and what batching is worth.

    python -m benchmarks.serving RUNS [--index INDEX]    the newest run of a folder, or a checkpoint

200 mixed requests of 16 clients: prompts of the run's held-out documents, seven in ten generated
(one of them in five with a temperature and a seed of its own), two explained, one steered. First
with batches of one, where each answer is computed alone and is what the others must equal; then
with batches. 64 requests to generate alike show what batches are worth.

Text, token ids and names must be equal; numbers within a tolerance, since a batch adds its floats
in another order. Wall seconds, seen by the clients; the server is a process of its own, one thread.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2 as httpx

from components import contracts
from components.run_folder import RunFolder
from pipelines.earlier import chosen_run

N_REQUESTS, N_PLAIN, N_CLIENTS, N_NEW = 200, 64, 16, 16
TOLERANCE = 1e-3
"""Of a number, or of 1 where that is more."""

_LOOK = {"input_targets": 4}

Ask = tuple[str, dict[str, Any]]
"""Path and body."""


@dataclass(frozen=True)
class Told:
    """One answer and the seconds it took; `answer` is None for an error."""

    answer: Any
    seconds: float


def main() -> None:
    """Print one line for each way of asking."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Raw)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--index", default="", help="one that is not the run's own")
    given = parser.parse_args()
    run = chosen_run(given.runs, "")
    prompts = _prompts(RunFolder(run))
    loads = {
        "mixed": mixed(prompts),
        "generation": [_generation(one, 0) for one in prompts[:N_PLAIN]],
    }
    for name, asked in loads.items():
        alone = _arm(given, f"{name}, each alone", asked, [], batch=1)
        _arm(given, f"{name}, batches of {N_CLIENTS}", asked, alone, batch=N_CLIENTS)


class _Raw(argparse.RawDescriptionHelpFormatter):
    """Keeps the table above as it stands."""


def _arm(
    given: argparse.Namespace, name: str, asked: Sequence[Ask], alone: list[Told], *, batch: int
) -> list[Told]:
    with _server(given, batch) as address:
        answers(address, asked[:2], 1)  # the first pass allocates
        began = time.perf_counter()
        told = answers(address, asked, N_CLIENTS)
        seconds = time.perf_counter() - began
    took = sorted(one.seconds for one in told)
    errors = sum(one.answer is None for one in told)
    line = (
        f"{name:<28} {N_CLIENTS} clients   {len(asked) / seconds:6.2f} requests/s   "
        f"p50 {took[len(took) // 2]:6.2f} s   p95 {took[int(0.95 * len(took))]:6.2f} s   "
        f"errors {errors}"
    )
    if alone:
        apart = [difference(one.answer, two.answer) for one, two in zip(alone, told, strict=True)]
        crossed = sum(far > TOLERANCE for far in apart)
        line += f"   crossed {crossed}   largest difference {max(apart):.1e}"
    print(f"{line} (n={len(asked)})", flush=True)
    return told


def mixed(prompts: Sequence[str]) -> list[Ask]:
    """A request of some kind for each prompt."""
    asked: list[Ask] = []
    for number, prompt in enumerate(prompts):
        path, body = _generation(prompt, number)
        if number % 10 in (3, 8):
            asked.append(("/explain", {"request": body, "options": _LOOK}))
        elif number % 10 == 5:
            wish = {"concept": str(number % 50), "action": "amplify", "strength_logits": 6.0}
            asked.append(("/steer", {"request": body, "wishes": [wish], "options": _LOOK}))
        else:
            asked.append((path, body))
    return asked


def _generation(prompt: str, number: int) -> Ask:
    drawn = {"temperature": 0.8, "seed": number} if number % 5 == 4 else {}
    return "/generate", {"prompt": prompt, "sampling": {"n_new": N_NEW, **drawn}}


def answers(address: str, asked: Sequence[Ask], n_clients: int) -> list[Told]:
    """What clients that ask at the same time are told, in the order of the requests."""
    turns = [asked[client::n_clients] for client in range(n_clients)]
    with ThreadPoolExecutor(n_clients) as pool:
        told = list(pool.map(lambda turn: _in_turn(address, turn), turns))
    return [told[number % n_clients][number // n_clients] for number in range(len(asked))]


def _in_turn(address: str, asked: Sequence[Ask]) -> list[Told]:
    with httpx.Client(base_url=address, timeout=600) as client:
        return [_told(client, path, body) for path, body in asked]


def _told(client: httpx.Client, path: str, body: dict[str, Any]) -> Told:
    began = time.perf_counter()
    response = client.post(path, json=body)
    seconds = time.perf_counter() - began
    if response.status_code != 200:
        print(f"{path}: {response.status_code} {response.text}", file=sys.stderr)
        return Told(None, seconds)
    *_, last = response.text.splitlines()
    answer = json.loads(last)
    return Told(answer["answer"] if answer.get("event") == "answer" else answer, seconds)


def difference(one: Any, other: Any) -> float:
    """The largest difference of two answers' numbers; infinite where anything else differs."""
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) / max(1.0, abs(one))
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return max((difference(one[key], other[key]) for key in one), default=0.0)
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return max((difference(a, b) for a, b in zip(one, other, strict=True)), default=0.0)
    return 0.0 if one == other else math.inf


@contextmanager
def _server(given: argparse.Namespace, batch: int) -> Iterator[str]:
    command = [
        sys.executable, "-m", "pipelines.cli", "serve", "--runs", str(given.runs), "--port", "0",
        "--queue", "1000", "--batch", str(batch), *(["--index", given.index] * bool(given.index)),
    ]  # fmt: skip
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=one_thread) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[2]
        process.terminate()


def _prompts(run: RunFolder) -> list[str]:
    """Beginnings of held-out documents, of different lengths."""
    documents = run.table(contracts.DOCUMENTS).to_pylist()
    texts = [" ".join(row["text"].split()) for row in documents if row["split"] == "test"]
    found = [text[at : at + 30 + 7 * (at % 11)] for at in range(0, 4000, 97) for text in texts]
    return [text for text in dict.fromkeys(found) if len(text) > 20][:N_REQUESTS]


if __name__ == "__main__":
    main()
