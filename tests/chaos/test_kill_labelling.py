"""SIGKILL while a corpus is labelled: what was finished is kept, and the bytes are the same."""

import os
import signal
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path

import psutil
import pytest

from components import contracts
from components.atlas.labelling import annotate
from components.atlas.labelling_config import AnnotateConfig
from components.engine_config import EngineConfig
from components.engines import EngineError, work
from tests.components.interrupted import KILLED, Moment
from tests.components.written_chunks import write_chunks

pytestmark = pytest.mark.chaos
ROOT = Path(__file__).parents[2]
CONFIG = AnnotateConfig(batch_chunks=4, shard_chunks=4, engine=EngineConfig(n_workers=1))
MOMENTS = [
    *((("components.annotators", "Annotator.find", nth), nth - 1) for nth in range(1, 7)),
    *((("components.atlas.chunk_shards", "digest_of", nth), nth - 1) for nth in (1, 4, 6)),
    (("components.atlas.labelling", "_put", 3), 6),
    (("components.contracts", "seal", 1), 6),
]
"""Where it is killed, and how many of the six shards were finished before."""


def label(given: dict[str, Path], folder: Path, scratch: Path, events: object) -> None:
    folder.mkdir()
    annotate(*given.values(), folder, CONFIG, events=events, scratch=scratch)


def killed(moment: Moment, *arguments: object) -> None:
    moment.arm()
    label(*arguments)


@pytest.mark.parametrize(("moment", "n_finished"), MOMENTS)
def test_a_killed_labelling_repeats_the_open_shard_alone(moment, n_finished, tmp_path):
    given, told, scratch = write_chunks(tmp_path), [], tmp_path / "scratch"
    scratch.mkdir()
    label(given, tmp_path / "whole", tmp_path / "scratch", told.append)
    expected = contracts.manifest_of(tmp_path / "whole")
    (tmp_path / "other").mkdir()
    arguments = (Moment(*moment), given, tmp_path / "killed", tmp_path / "other", told.append)
    child = get_context("fork").Process(target=killed, args=arguments)
    child.start()
    child.join(60)
    assert child.exitcode == KILLED
    told.clear()
    label(given, tmp_path / "again", tmp_path / "other", told.append)
    assert contracts.manifest_of(tmp_path / "again") == expected
    assert len([event for event in told if not event.message]) == 6 - n_finished


def die_once(folder: Path, number: int) -> int:
    """A piece that kills its worker, the first time that it is the fifth."""
    if number == 5 and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    (folder / str(number)).touch()
    return number


class DieOnce:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, number: int) -> int:
        return die_once(self.folder, number)


def test_a_killed_worker_ends_the_work_with_a_way_on(tmp_path):
    with pytest.raises(EngineError, match=r"one of 2 workers died.*run again"):
        list(work(DieOnce(tmp_path), range(9), EngineConfig(n_workers=2)))
    assert sorted(work(DieOnce(tmp_path), range(9), EngineConfig(n_workers=2))) == list(range(9))


WAITS = """
import sys, threading
from pathlib import Path
from components.engine_config import EngineConfig
from components.engines import work
from tests.chaos.test_kill_labelling import Wait

if __name__ == "__main__":
    list(work(Wait(Path(sys.argv[1])), range(2), EngineConfig(n_workers=2)))
"""


class Wait:
    """A piece that says which process it is in, and never ends."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, number: int) -> int:
        (self.folder / f"{number}.partial").write_text(str(os.getpid()))
        (self.folder / f"{number}.partial").rename(self.folder / str(number))
        signal.pause()
        return number


def test_workers_end_when_the_command_is_killed(tmp_path):
    script = tmp_path / "waits.py"
    script.write_text(WAITS)
    command = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)], env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    here = [tmp_path / "0", tmp_path / "1"]
    while not all(path.exists() for path in here):
        assert command.poll() is None
        os.sched_yield()
    workers = [psutil.Process(int(path.read_text())) for path in here]
    command.kill()
    _, alive = psutil.wait_procs([command, *workers], timeout=60)
    assert not alive
