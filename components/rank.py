"""What one rank of an optimisation does: `python -m components.rank job.json`, under torchrun."""

import json
import os
import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from components import builds, feeding, launch, lifted, savepoints
from components.job import Job
from components.keeper import ScratchKeeper
from components.loader import Batches
from components.optimisation import HISTORY_FILE, SOURCES_FILE, tokens_per_chunk
from components.savepoints import Savepoint
from components.tokens import TokenStream
from components.windows import asked_of, held_out
from model import checkpoint, starting
from model.curve import History
from model.diffusion import Batch
from model.endings import DivergedError, StoppedError
from model.events import Event, Events
from model.language_model import LanguageModel
from model.starting import Start
from model.train import fit
from model.zero import ZeroEngine, close


def work(job: Job, events: Events) -> None:
    """Train this rank's share; rank 0 writes what comes out."""
    if os.environ["LOCAL_RANK"] == "0":  # the others wait for the same locks, until they are gone
        n_steps = job.training.n_steps
        builds.settle(builds.folder(), lambda said: events(Event(0, n_steps, message=said)))
    with ExitStack() as held:
        stream = held.enter_context(
            feeding.opened(Path(job.tokens), job.data, Path(job.folder) / feeding.CACHE_FOLDER)
        )
        engine = ZeroEngine.started(beginning(job, stream), job.training, job.zero)
        batches = held.enter_context(feeding.fed(job, stream, rank=engine.rank, world=engine.world))
        history = _kept(job, engine, batches, stream, events)
        lm = engine.finished()
        if engine.rank == 0:
            _write(job, lm, history, batches)
    close()


def _write(job: Job, lm: LanguageModel, history: History, batches: Batches) -> None:
    """What the stage that started the ranks reads."""
    folder = Path(job.folder)
    checkpoint.save(lm, folder)
    rows = [asdict(row) for row in history.rows]
    record = {"rows": rows, "n_skipped": history.n_skipped}
    (folder / HISTORY_FILE).write_text(json.dumps(record))
    given = batches.accounting(job.training.n_steps)
    sources = {name: asdict(given[name]) for name in sorted(given)}
    (folder / SOURCES_FILE).write_text(json.dumps(sources))


def _kept(
    job: Job, engine: ZeroEngine, batches: Batches, stream: TokenStream, events: Events
) -> History:
    """Train, and keep the run's state on the way if the job has a place for it."""

    def batch_at(step: int) -> Batch:
        return asked_of(batches.batch(step), job, stream)

    valid = held_out(job, stream)
    words = lifted.table(Path(job.lifted), job.prevalence) if job.lifted else None
    if not job.scratch:
        return fit(engine, job.training, batch_at, valid, events, lifted=words)
    scratch = Path(job.scratch)
    start = Savepoint.at(Path(job.savepoint)) if job.savepoint else None
    # A branch of another run may shuffle anew, but a stream has no other way to a later step.
    if start is not None and (start.folder.is_relative_to(scratch) or job.data.is_streamed):
        batches.restore(start.state.loader)
    keeper = ScratchKeeper(
        scratch,
        engine,
        job.training.saving,
        start,
        batches.state,
        lambda standing, loaders: job.state(standing, engine.world, loaders),
        events,
    )
    try:
        return fit(engine, job.training, batch_at, valid, events, keeper, words)
    except DivergedError as error:
        keeper.close()  # before what it tidies is moved
        raise DivergedError(f"{error}. {_last_good(scratch, engine.rank)}") from error
    except StoppedError as error:
        raise StoppedError(f"{error}. {_newest(scratch)}") from error
    finally:
        keeper.close()


def _newest(scratch: Path) -> str:
    found = savepoints.listed(scratch)
    return f"Its newest savepoint is of step {found[0].step}" if found else "It left no savepoint"


def _last_good(scratch: Path, rank: int) -> str:
    """The newest savepoint, which is never one of the bad stretch, kept for good."""
    found = savepoints.listed(scratch)
    if not found:
        return "There is no savepoint before it"
    newest = savepoints.keep_for_good(found[0], scratch) if rank == 0 else found[0]
    return (
        f"The last good savepoint, of step {newest.step}, is kept in {newest.folder}; to go on "
        f"from it with another config, name it in training.continue_from"
    )


def beginning(job: Job, stream: TokenStream) -> Start:
    """The weights to start from: a checkpoint's, or fresh ones."""
    if job.start_from:
        return checkpoint.opened(Path(job.start_from))
    return starting.fresh(job.network, job.training.seed, job.prevalence, tokens_per_chunk(stream))


def main() -> None:
    path = Path(sys.argv[1])
    with launch.reporting(path.parent, int(os.environ["RANK"])) as events:
        work(Job.model_validate_json(path.read_text()), events)


if __name__ == "__main__":
    main()
