"""Where an optimisation begins, and that it never begins again unasked."""

import shutil
from pathlib import Path

import pytest

from components import resuming, savepoints
from components.job import Job
from components.launch import RanksConfig
from components.savepoints import Savepoint, SavepointError
from components.tokens import TokenStream
from components.training_state import Topology
from model import schedules
from model.progress import Progress
from model.zero_config import ZeroConfig
from tests.components.small_training import N_STEPS, train_config
from tests.components.written_tokens import CONCEPTS, write_tokens

ONE = RanksConfig(ranks=1, threads=1)


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    return write_tokens(tmp_path_factory.mktemp("stream") / "tokens")


@pytest.fixture
def job(tokens, tmp_path):
    stream, config = TokenStream(tokens), train_config()
    return Job(
        tokens=str(tokens),
        folder=str(tmp_path),
        network=config.network.language_model(
            vocab_size=stream.vocab_size, n_known=len(CONCEPTS), specials=stream.specials
        ),
        start_from="",
        prevalence=(0.3,) * len(CONCEPTS),
        training=config.training,
        domain_weights={},
        validation_sequences=6,
        zero=ZeroConfig(),
    )


def keep(job: Job, scratch: Path, step: int, *, permanent: bool = False) -> Savepoint:
    """A savepoint of this job without tensors."""
    folder = savepoints.attempt(scratch, step, permanent=permanent)
    savepoints.begin(folder)
    (folder / "tensors").write_bytes(bytes(step))
    state = job.state(Progress(step=step).standing(), 1, [{"step": step}])
    return savepoints.commit(folder, state, {})


def begun(job, scratch, ranks=ONE):
    told = []
    found = resuming.from_newest(job, ranks, scratch, told.append)
    return found.savepoint, " ".join(event.message for event in told)


def test_a_run_that_is_truly_the_first_begins(job, tmp_path):
    assert begun(job, tmp_path / "scratch") == ("", "")


def test_the_newest_is_taken_and_said_with_the_reason(job, tmp_path):
    keep(job, tmp_path / "scratch", 4)
    newest = keep(job, tmp_path / "scratch", 6, permanent=True)
    folder, said = begun(job, tmp_path / "scratch")
    assert folder == str(newest.folder)
    assert said.startswith(f"goes on after step 6 of {N_STEPS}: the newest of 2 savepoints")


def test_a_world_of_another_size_is_refused_before_any_large_file_is_read(job, tmp_path):
    made = keep(job, tmp_path / "scratch", 4)
    (made.folder / "tensors").unlink()  # so that reading on would fail otherwise
    with pytest.raises(SavepointError, match=r"ranks 1 \(asked: 2\)"):
        begun(job, tmp_path / "scratch", RanksConfig(ranks=2, threads=1))


def test_a_converted_savepoint_serves_who_asked_for_it(job, tmp_path):
    old = keep(job, tmp_path / "scratch", 4)
    attempt = savepoints.attempt(tmp_path / "scratch", 4, permanent=False)
    savepoints.begin(attempt)
    topology = Topology(ranks=2, zero_stage=1, micro_batches=1)
    state = old.state.model_copy(update={"topology": topology})
    new = savepoints.commit(attempt, state, {})
    assert begun(job, tmp_path / "scratch")[0] == str(old.folder)
    assert begun(job, tmp_path / "scratch", RanksConfig(ranks=2))[0] == str(new.folder)


def test_another_config_does_not_go_on_by_itself_but_branches_when_told_to(job, tmp_path):
    made = keep(job, tmp_path / "scratch", 6, permanent=True)
    training = job.training.annealed(str(made.folder), 6, 3)
    branch = job.model_copy(update={"training": training})
    with pytest.raises(SavepointError, match=r"belongs to another network, training config"):
        begun(branch, tmp_path / "scratch")
    folder, said = begun(branch, tmp_path / "branch")
    assert folder == str(made.folder)
    assert said.startswith("goes on after step 6 of 9: as asked")


def test_a_branch_from_nothing_is_an_error_that_names_what_there_is(job, tmp_path):
    made = keep(job, tmp_path / "scratch", 6)
    wrong = str(made.folder)[:-1] + "x"
    branch = job.training.model_copy(update={"continue_from": wrong})
    with pytest.raises(SavepointError, match=rf"is no savepoint.*{made.folder.name}"):
        begun(job.model_copy(update={"training": branch}), tmp_path / "branch")


def test_a_branch_that_would_end_before_it_begins_is_refused(job, tmp_path):
    made = keep(job, tmp_path / "scratch", N_STEPS)
    branch = job.training.model_copy(update={"continue_from": str(made.folder)})
    with pytest.raises(SavepointError, match=rf"after step {N_STEPS}, but this run has {N_STEPS}"):
        begun(job.model_copy(update={"training": branch}), tmp_path / "branch")


def test_an_annealed_run_goes_on_at_the_peak_and_falls_to_the_floor(job):
    trunk = job.training
    assert trunk.n_steps == 12
    annealed = trunk.annealed("somewhere", 7, 4)
    rates = [
        schedules.learning_rate(annealed.optim, step, annealed.n_steps)
        for step in range(7, annealed.n_steps)
    ]
    assert len(rates) == 4
    assert rates[0] == schedules.learning_rate(trunk.optim, 7, trunk.n_steps) == 5e-3
    assert rates == sorted(set(rates), reverse=True)
    assert rates[-1] < 0.3 * rates[0]
    with pytest.raises(ValueError, match=r"step 0 is still in the warm-up of 1 steps"):
        trunk.annealed("somewhere", 0, 4)


def test_what_nobody_can_move_cannot_be_passed_over_for_ever(job, tmp_path):
    made = [keep(job, tmp_path / "scratch", step) for step in range(1, 7)]
    for savepoint in made:
        shutil.copy(made[0].folder / "manifest.json", savepoint.folder / "tensors")
    with pytest.raises(SavepointError) as caught:
        begun(job, tmp_path / "scratch")
    assert str(caught.value).count("tensors has") == savepoints.MOST_PASSED_OVER + 1
