import json
import sys
from pathlib import Path

import pytest

from components import launch
from components.launch import RankError, RanksConfig
from model.endings import DivergedError

TWO = RanksConfig(ranks=2, threads=1)


def job(folder, *, fails, diverges=False):
    path = folder / "job.json"
    path.write_text(json.dumps({"fails": fails, "diverges": diverges}))
    return path


def test_ranks_run_and_their_events_come_back_once(tmp_path):
    told = []
    launch.run("tests.components.some_rank", job(tmp_path, fails=-1), TWO, told.append)
    assert [(event.step, dict(event.metrics)) for event in told] == [(1, {"world": 2.0}), (2, {})]


def test_a_failed_rank_is_named_with_its_own_traceback(tmp_path):
    with pytest.raises(RankError, match=r"(?s)rank 1 failed.*ValueError: rank 1 met its end"):
        launch.run("tests.components.some_rank", job(tmp_path, fails=1), TWO, lambda event: None)


def test_a_rank_that_dies_without_a_word_shows_its_output(tmp_path):
    one = RanksConfig(ranks=1, threads=1)
    with pytest.raises(RankError, match=r"(?s)no traceback.*No module named"):
        launch.run("no.such.module", job(tmp_path, fails=-1), one, lambda event: None)


def test_an_end_that_was_meant_has_its_message_and_exit_code_and_no_traceback(tmp_path):
    with pytest.raises(RankError) as caught:
        launch.run("tests.components.some_rank", job(tmp_path, fails=-1, diverges=True), TWO, print)
    assert str(caught.value) == "3 steps in a row were not finite"
    assert caught.value.exit_code == DivergedError.exit_code == 76


def test_a_listener_that_fails_ends_the_ranks(tmp_path):
    def stop(event):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launch.run("tests.components.some_rank", job(tmp_path, fails=-1), TWO, stop)


def test_ranks_find_threads_of_their_own_and_one_operator_cache(monkeypatch):
    monkeypatch.delenv("TORCH_EXTENSIONS_DIR", raising=False)
    found = launch.environment(RanksConfig(ranks=1, threads=3))
    assert found["OMP_NUM_THREADS"] == "3"
    assert Path(found["TORCH_EXTENSIONS_DIR"]).parent == Path(sys.prefix)
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", "/elsewhere")
    found = launch.environment(RanksConfig(ranks=1, threads=3))
    assert found["TORCH_EXTENSIONS_DIR"] == "/elsewhere"
