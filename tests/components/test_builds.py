"""A dead lock is noticed by whoever would wait for it; a live one is left alone."""

import os
import time

import pytest

from components import builds


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(builds, "POLL_SECONDS", 0.0)


def lock_in(folder, name="operator"):
    lock = folder / name / "lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    return lock


@pytest.mark.parametrize("name", ["operator", "py311_cpu/operator"])
def test_a_lock_whose_builder_is_gone_is_removed_aloud(tmp_path, name):
    lock, told = lock_in(tmp_path, name), []
    (lock.parent / "operator.so").touch()
    builds.settle(tmp_path, told.append)
    assert not lock.exists()
    assert (lock.parent / "operator.so").exists()
    assert len(told) == 1
    assert told[0].startswith(f"removed {lock}: no process of this machine holds it")


def test_a_build_that_goes_on_is_waited_for_and_named(tmp_path):
    lock, told = lock_in(tmp_path), []
    held = os.open(lock, os.O_RDONLY)

    def hear(said):
        told.append(said)
        os.close(held)  # in torch's order
        lock.unlink()

    builds.settle(tmp_path, hear)
    assert told == [f"waits for {lock}: process {os.getpid()} is building"]


def test_another_machine_has_time_to_build_but_not_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(builds, "_OWN_DISKS", ())
    lock, told = lock_in(tmp_path), []

    def hear(said):
        told.append(said)
        if not lock.exists():
            return
        long_ago = time.time() - builds.LONGEST_SECONDS - 1.0
        os.utime(lock, (long_ago, long_ago))

    builds.settle(tmp_path, hear)
    assert not lock.exists()
    assert [said.split()[0] for said in told] == ["waits", "removed"]
    assert "another machine may be building, until 600 s" in told[0]


def test_a_lock_that_is_about_to_be_removed_by_its_builder_is_not_removed_under_it(
    tmp_path, monkeypatch
):
    lock_in(tmp_path)
    looks = []

    def closed_a_moment_ago(path):
        looks.append(path)
        if len(looks) == 2:
            path.unlink()  # FileNotFoundError, had it been removed at the first look

    monkeypatch.setattr(builds, "_holder", closed_a_moment_ago)
    builds.settle(tmp_path, lambda said: None)
    assert len(looks) == 2


def test_nothing_is_built_in_a_folder_that_is_not_there(tmp_path):
    builds.settle(tmp_path / "none", pytest.fail)
