"""A killed run goes on as if nothing had happened; what is torn or damaged is passed over aloud."""

import json
import random
import shutil
import signal
from pathlib import Path

import pytest

from components import savepoints
from components.savepoints import SavepointError
from components.training_state import Topology, TrainingState
from tests.components import interrupted
from tests.components.interrupted import EVERY, KILLED, TOPOLOGY, Moment

BATCH = "tests.model.tiny"
FILES = "model.hashed_file"


def at_batch(nth):
    return Moment(BATCH, "batch_at", nth)


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """The run that nobody killed."""
    folder = tmp_path_factory.mktemp("straight")
    assert interrupted.run(folder, interrupted.config()) == 0
    return folder


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A run that was killed in step 10, after its savepoints of steps 3, 6 and 9."""
    folder = tmp_path_factory.mktemp("killed")
    assert interrupted.run(folder, interrupted.config(), at_batch(11)) == KILLED
    return folder


@pytest.fixture
def half(killed, tmp_path):
    """What it left, to do harm to."""
    return Path(shutil.copytree(killed, tmp_path / "half"))


def newest(folder):
    found = savepoints.newest(folder / "scratch", TOPOLOGY)
    assert found is not None
    return found


def test_killed_at_random_steps_twice_the_run_is_the_uninterrupted_one(straight, tmp_path):
    draw = random.Random(3)
    first, second = draw.randint(4, 8), draw.randint(3, 5)
    assert interrupted.run(tmp_path, interrupted.config(), at_batch(first)) == KILLED
    assert interrupted.run(tmp_path, interrupted.config(), at_batch(second)) == KILLED
    assert interrupted.run(tmp_path, interrupted.config()) == 0
    assert interrupted.rows(tmp_path) == interrupted.rows(straight)
    taken, once = interrupted.samples(tmp_path), interrupted.samples(straight)
    assert set(taken) == set(once)
    assert len(taken) <= len(once) + 2 * EVERY


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(Moment(FILES, "HashedFile.write", 7), id="in a shard"),
        pytest.param(
            Moment("components.savepoints", "commit", 2), id="uncommitted", marks=pytest.mark.chaos
        ),
        pytest.param(
            Moment("components.savepoints", "_write_durably", 4),
            id="no manifest",
            marks=pytest.mark.chaos,
        ),
    ],
)
def test_a_torn_savepoint_is_never_seen(moment, straight, tmp_path):
    assert interrupted.run(tmp_path, interrupted.config(), moment) == KILLED
    assert [one.step for one in savepoints.listed(tmp_path / "scratch")] in ([], [3])
    assert list((tmp_path / "scratch" / "savepoints").glob("attempt-*"))
    assert interrupted.run(tmp_path, interrupted.config()) == 0
    assert interrupted.rows(tmp_path) == interrupted.rows(straight)
    assert not list((tmp_path / "scratch" / "savepoints").glob("attempt-*"))


def test_a_damaged_byte_sends_the_run_to_the_savepoint_before_and_names_file_and_digest(
    half, straight
):
    last = newest(half).savepoint
    shard = last.folder / "plain.safetensors"
    data = bytearray(shard.read_bytes())
    data[-5] ^= 1
    shard.write_bytes(data)
    assert newest(half).savepoint.step == last.step - EVERY
    assert interrupted.run(half, interrupted.config()) == 0
    assert f"{shard} has SHA-256" in interrupted.messages(half)
    assert interrupted.rows(half) == interrupted.rows(straight)


@pytest.mark.parametrize("harm", ["truncate", "empty", "remove"])
def test_a_file_that_is_short_or_gone_is_noticed(harm, half):
    last = newest(half).savepoint
    shard = last.folder / "plain.safetensors"
    match harm:
        case "truncate":
            shard.write_bytes(shard.read_bytes()[:-1])
        case "empty":
            shard.write_bytes(b"")
        case "remove":
            shard.unlink()
    found = newest(half)
    assert found.savepoint.step < last.step
    assert str(shard) in found.passed_over[0]


def test_where_nothing_can_be_trusted_the_run_does_not_begin_again_unasked(half):
    for savepoint in savepoints.listed(half / "scratch"):
        (savepoint.folder / "state.json").write_text("{}")
    with pytest.raises(SavepointError, match=r"(?s)state.json has 2 bytes.*To begin again.*remove"):
        newest(half)


def test_an_edited_manifest_does_not_vouch_for_its_folder(half):
    last = newest(half).savepoint
    manifest = json.loads((last.folder / "manifest.json").read_text())
    del manifest["files"]["plain.safetensors"]
    (last.folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(SavepointError, match=r"manifest.json is not the one that named"):
        savepoints.verify(last.folder)


def test_another_world_is_refused_with_both_values_and_the_command_that_converts(half):
    last = newest(half).savepoint
    asked = Topology(ranks=2, zero_stage=1, micro_batches=1)
    with pytest.raises(
        SavepointError,
        match=r"(?s)ranks 1 \(asked: 2\).*zero_stage 0 \(asked: 1\).*"
        r"components.conversion \S+ --ranks 2 --zero-stage 1 --micro-batches 1",
    ):
        savepoints.refuse_other(last, asked)


def test_a_savepoint_that_was_named_must_be_there(half):
    missing = half / "scratch" / "savepoints" / "step-000000008-abc"
    with pytest.raises(SavepointError, match=r"is no savepoint.*There are \['step-000000009"):
        savepoints.opened(missing)


def test_two_verified_savepoints_stay_and_none_goes_before_the_new_one_verifies(half):
    scratch = half / "scratch"
    assert savepoints.tidy(scratch, 2) == []  # the kill may have come before the run's own
    assert [one.step for one in savepoints.listed(scratch)] == [9, 6]
    damaged = newest(half).savepoint.folder / "plain.safetensors"
    damaged.write_bytes(b"")
    (problem,) = savepoints.tidy(scratch, 2)
    assert problem.startswith(f"{damaged} has 0 bytes, committed were ")
    assert [one.step for one in savepoints.listed(scratch)] == [9, 6]


def test_what_is_kept_for_good_is_never_tidied_away(tmp_path):
    saving = {"every_steps": 2, "keep_every": 4}
    wanted = interrupted.config().model_copy(
        update={"saving": type(interrupted.config().saving)(**saving)}
    )
    assert interrupted.run(tmp_path, wanted) == 0
    found = savepoints.listed(tmp_path / "scratch")
    assert [(one.folder.parent.name, one.step) for one in found] == [
        ("savepoints", 10), ("kept", 8), ("kept", 4),
    ]  # fmt: skip


def test_a_state_that_lacks_a_member_is_refused_by_name(half):
    text = json.loads(newest(half).savepoint.state.model_dump_json())
    del text["loader"]
    with pytest.raises(ValueError, match=r"loader\s+Field required"):
        TrainingState.model_validate_json(json.dumps(text))


def test_asked_to_stop_the_run_ends_its_step_saves_and_goes_on_later(straight, tmp_path):
    wanted = interrupted.config()
    child = interrupted.start(tmp_path, wanted, Moment(BATCH, "batch_at", 5, signal.SIGTERM))
    child.join()
    assert child.exitcode == 1  # StoppedError, which a rank turns into its exit code
    assert newest(tmp_path).savepoint.step == 5
    assert interrupted.run(tmp_path, wanted) == 0
    assert interrupted.rows(tmp_path) == interrupted.rows(straight)


def test_a_savepoint_of_another_version_is_refused_with_a_way_on(half):
    folder = newest(half).savepoint.folder
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace(savepoints.VERSION, "0.9.0"))
    with pytest.raises(savepoints.SavepointError, match=r"version 0\.9\.0.*commit that wrote it"):
        savepoints.verify(folder)
