"""Ranks on a mixture of packed tokens and streams, killed, or asked for in another number."""

import json
import random

import pytest

from components import savepoints
from components.conversion import convert
from components.data_config import DataConfig, PackedSource, StreamedSource
from tests.components import fed_job, interrupted
from tests.components.interrupted import Moment
from tests.components.ranked_runs import go, job, left, ranks_rows
from tests.components.written_tokens import write_tokens

pytestmark = pytest.mark.chaos
MOMENTS = [
    ("components.lanes", "Lane.windows", 12),
    ("components.keeper", "ScratchKeeper._commit", 3),
    ("components.loader", "joined", 3),
    ("model.zero", "ZeroEngine.step", 9),
]


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    return write_tokens(tmp_path_factory.mktemp("stream") / "tokens")


@pytest.fixture
def mixed(tmp_path, monkeypatch):
    """A packed source, and streams of which each rank reads its own lanes."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "datasets")
    streams = fed_job.write_dataset(tmp_path / "tales", "xyz")
    return DataConfig(
        sources={"own": PackedSource(), "tales": StreamedSource(path=str(streams))},
        weights={"own": 1.0, "tales": 1.0}, lanes=4,
    )  # fmt: skip


def test_a_killed_mixture_goes_on_with_the_batches_it_would_have_had(tokens, tmp_path, mixed):
    straight = job(tmp_path / "straight", tokens).model_copy(update={"data": mixed})
    assert go(straight, tmp_path / "none") == [0, 0]
    draw = random.Random(1)
    wanted = job(tmp_path / "run", tokens).model_copy(update={"data": mixed})
    for module, name, most in MOMENTS:
        moment = Moment(module, name, draw.randint(1, most))
        codes = go(wanted, tmp_path / "scratch", killed=draw.randint(0, 1), moment=moment)
        if codes == [0, 0]:
            break
    if not (tmp_path / "run" / "history.json").is_file():
        assert go(wanted, tmp_path / "scratch") == [0, 0]
    assert left(tmp_path / "run") == left(tmp_path / "straight")
    given = json.loads((tmp_path / "run" / "sources.json").read_text())
    assert sum(source["n_windows"] for source in given.values()) == 12 * 4


def test_a_mixture_of_two_ranks_goes_on_over_one(tokens, tmp_path, mixed):
    straight = job(tmp_path / "straight", tokens).model_copy(update={"data": mixed})
    assert go(straight, tmp_path / "none") == [0, 0]
    wanted = job(tmp_path / "run", tokens).model_copy(update={"data": mixed})
    scratch = tmp_path / "scratch"
    assert interrupted.KILLED in go(
        wanted, scratch, moment=Moment("model.zero", "ZeroEngine.step", 8)
    )
    kept = savepoints.listed(scratch)[0]
    assert list(kept.state.loader["lanes"]) == ["0", "1", "2", "3"]
    convert(kept.folder, wanted.topology(1))
    assert go(wanted, scratch, world=1) == [0]
    first, second = (ranks_rows(folder) for folder in (tmp_path / "straight", tmp_path / "run"))
    assert second == pytest.approx(first, rel=1e-6)
