"""Engines: every piece once, whichever does it; errors of pieces arrive."""

from pathlib import Path

import pytest

from components.engine_config import EngineConfig
from components.engines import work

HERE = EngineConfig(n_workers=1)
TWO = EngineConfig(n_workers=2)


class Write:
    """A piece that leaves a file; the one of number 4 may be impossible."""

    def __init__(self, folder: Path, *, fails: bool = False) -> None:
        self.folder, self.fails = folder, fails

    def __call__(self, number: int) -> int:
        if self.fails and number == 4:
            raise ValueError("piece 4 cannot be done")
        (self.folder / str(number)).write_text("done")
        return number


def left(folder: Path) -> list[int]:
    return sorted(int(path.name) for path in folder.iterdir())


def test_only_the_numbers_that_are_asked_for_are_done(tmp_path):
    assert list(work(Write(tmp_path), [7, 2], HERE)) == [7, 2]
    assert left(tmp_path) == [2, 7]


def test_after_an_error_nothing_further_is_begun(tmp_path):
    with pytest.raises(ValueError, match="piece 4 cannot"):
        list(work(Write(tmp_path, fails=True), [3, 4, 5], HERE))
    assert left(tmp_path) == [3]


@pytest.mark.slow
def test_processes_do_every_piece_and_hand_over_errors(tmp_path):
    assert sorted(work(Write(tmp_path), range(9), TWO)) == list(range(9))
    assert left(tmp_path) == list(range(9))
    with pytest.raises(ValueError, match="piece 4 cannot"):
        list(work(Write(tmp_path, fails=True), range(9), TWO))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what Ray and its workers say about themselves
def test_ray_does_every_piece(tmp_path, monkeypatch):
    pytest.importorskip("ray", reason="requirements-ray.txt is not installed")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    ray = EngineConfig(name="ray", n_workers=2)
    assert sorted(work(Write(tmp_path), range(9), ray)) == list(range(9))
    assert left(tmp_path) == list(range(9))
