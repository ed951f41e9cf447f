"""Where an optimisation begins: at its first step, or at a savepoint; and it says which and why.

A run goes on by itself from the newest of its own savepoints that verifies. `continue_from` names
one of another run to branch from, under another config if wanted. What is missing, damaged beyond
doubt or split over other ranks is an error: a run never begins again unasked.
"""

from pathlib import Path

from components import savepoints
from components.job import Job
from components.launch import RanksConfig
from components.savepoints import Found, Savepoint, SavepointError
from model.events import Event, Events


def from_newest(job: Job, ranks: RanksConfig, scratch: Path, events: Events) -> Job:
    """The job, told of its scratch folder and of the savepoint to go on from if there is one."""
    job = job.model_copy(update={"scratch": str(scratch)})
    asked = job.topology(ranks.ranks)
    own = savepoints.preferred(scratch, asked)
    if own:
        savepoints.refuse_other(own[0], asked)  # before any large file is read
        found = savepoints.newest(scratch, asked)
        assert found is not None
        savepoints.refuse_other(found.savepoint, asked)
        _refuse_other_run(found.savepoint, job)
        why = _why(found, len(own))
        start = found.savepoint
    elif job.training.continue_from:
        start = savepoints.opened(Path(job.training.continue_from))
        savepoints.refuse_other(start, asked)
        why = f"as asked, from {start.folder}, every digest verified"
    else:
        return job
    if start.step >= job.training.n_steps:
        raise SavepointError(
            f"{start.folder} stands after step {start.step}, but this run has "
            f"{job.training.n_steps} steps; raise n_tokens or name an earlier savepoint"
        )
    events(
        Event(
            step=start.step,
            total_steps=job.training.n_steps,
            message=f"goes on after step {start.step} of {job.training.n_steps}: {why}",
        )
    )
    return job.model_copy(update={"savepoint": str(start.folder)})


def _refuse_other_run(savepoint: Savepoint, job: Job) -> None:
    if savepoint.state.computes != job.computes:
        raise SavepointError(
            f"{savepoint.folder} belongs to another network, training config or token stream "
            f"({savepoint.state.computes[:12]}…, asked is {job.computes[:12]}…). Branch from it "
            f"with training.continue_from, or remove its folder to begin again"
        )


def _why(found: Found, n_listed: int) -> str:
    damaged = "".join(f"; passed over: {problem}" for problem in found.passed_over)
    return (
        f"the newest of {n_listed} savepoints in which every digest verifies{damaged} "
        f"({found.savepoint.folder})"
    )
