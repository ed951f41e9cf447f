"""Training in processes that are killed at a chosen moment and go on: plain, or ranks of a world.

Children are forked, so that a kill costs no imports. What they leave is all that a kill leaves.
"""

import importlib
import json
import os
import signal
import socket
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from multiprocessing import connection, get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

from components import savepoints
from components.keeper import ScratchKeeper
from components.loader import State
from components.training_state import Topology, TrainingState
from model.diffusion import Batch
from model.engine import PlainEngine
from model.events import Event
from model.progress import Standing
from model.train import fit
from model.train_config import TrainingConfig
from tests.model import tiny

TOPOLOGY = Topology(ranks=1, zero_stage=0, micro_batches=1)
EVERY = 3
KILLED = -signal.SIGKILL
_TOGETHER_SECONDS = 5.0
"""What ranks that leave on purpose may differ by."""


@dataclass(frozen=True)
class Moment:
    """The n-th call of a function: the process gets a signal before the function does anything."""

    module: str
    name: str
    """Of a function, or `Class.method`."""

    nth: int
    sends: signal.Signals = signal.SIGKILL

    def arm(self) -> None:
        *owners, name = self.name.split(".")
        owner = importlib.import_module(self.module)
        for each in owners:
            owner = getattr(owner, each)
        function, calls = getattr(owner, name), 0

        def killing(*arguments: object, **named: object) -> object:
            nonlocal calls
            calls += 1
            if calls == self.nth:
                os.kill(os.getpid(), self.sends)
            return function(*arguments, **named)

        setattr(owner, name, killing)


def config(n_steps: int = 12, **changes: object) -> TrainingConfig:
    return tiny.training(
        n_steps, log_every=1, validations=1, saving={"every_steps": EVERY}, **changes
    )


def state_of(standing: Standing, loaders: Sequence[State]) -> TrainingState:
    return TrainingState(
        standing=standing,
        tokens=0,
        alpha_known=0.0,
        alpha_unknown=0.0,
        loader=loaders[0],
        topology=TOPOLOGY,
        computes="tiny",
    )


def start(folder: Path, wanted: TrainingConfig, moment: Moment | None = None) -> BaseProcess:
    """A plain run in `folder` that goes on from what it finds there, in a process of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    child = get_context("fork").Process(target=_train, args=(folder, wanted, moment))
    child.start()
    return child


def run(folder: Path, wanted: TrainingConfig, moment: Moment | None = None) -> int | None:
    """The same, waited for. Returns its exit code."""
    child = start(folder, wanted, moment)
    child.join()
    return child.exitcode


def rows(folder: Path) -> list[dict[str, object]]:
    """The curve a finished run left, a row a step."""
    return json.loads((folder / "history.json").read_text())


def samples(folder: Path) -> list[tuple[int, str]]:
    """Step and sample ids of every batch that was taken, the repeated ones too."""
    lines = (folder / "samples.txt").read_text().splitlines()
    return [(int(step), ids) for step, _, ids in (line.partition(" ") for line in lines)]


def messages(folder: Path) -> str:
    path = folder / "messages.txt"
    return path.read_text() if path.is_file() else ""


def _train(folder: Path, wanted: TrainingConfig, moment: Moment | None) -> None:
    if moment is not None:
        moment.arm()
    scratch = folder / "scratch"
    found = savepoints.newest(scratch, TOPOLOGY)
    with (folder / "messages.txt").open("a") as told, (folder / "samples.txt").open("a") as taken:

        def hear(event: Event) -> None:
            told.write(event.message)

        def batch_at(step: int) -> Batch:
            batch = tiny.batch_at(step)
            taken.write(f"{step} {batch.sample_ids_B.tolist()}\n")
            taken.flush()
            return batch

        if found is not None:
            told.write("".join(found.passed_over))
        engine = PlainEngine(tiny.lm("cdlm", n_layers=1), wanted)
        keeper = ScratchKeeper(
            scratch,
            engine,
            wanted.saving,
            found and found.savepoint,
            lambda step: {"step": step},
            state_of,
            hear,
        )
        history = fit(engine, wanted, batch_at, [tiny.batch(6, seed=99)], keeper=keeper)
        keeper.close()
    (folder / "history.json").write_text(json.dumps([asdict(row) for row in history.rows]))


def ranks(world: int, work: Callable[[int], None], killed: int, moment: Moment | None) -> list[int]:
    """`work(rank)` in as many forked ranks; one may be killed, and then the others are too.

    Returns their exit codes.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def enter(rank: int) -> None:
        warnings.simplefilter("ignore")  # DeepSpeed's own, which pytest would make errors
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(world)}
        os.environ.update({**place, "RANK": str(rank), "LOCAL_RANK": str(rank)})
        if moment is not None and rank == killed:
            moment.arm()
        work(rank)

    context = get_context("fork")
    children = [context.Process(target=enter, args=(rank,)) for rank in range(world)]
    for child in children:
        child.start()
    while alive := [child for child in children if child.exitcode is None]:
        connection.wait([child.sentinel for child in alive])
        if any(child.exitcode for child in children):  # as torchrun does
            for child in children:
                child.join(timeout=_TOGETHER_SECONDS)
                child.kill()
                child.join()
    return [child.exitcode or 0 for child in children]
