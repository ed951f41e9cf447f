"""Two ranks of DeepSpeed save, and so hold, what the formulas of memory say."""

import pytest

from components import launch
from model import memory
from model.events import ignore
from model.memory import MicroBatch
from model.zero_config import ZeroConfig
from tests.model import held, tiny

NAMES_AND_SHAPES = 0.04
"""Share of a file that is not numbers."""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("held")
    (folder / "job.json").write_text("{}")
    launch.run(
        "tests.model.held", folder / "job.json", launch.RanksConfig(ranks=2, threads=1), ignore
    )
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("stage", held.STAGES)
def test_a_rank_saves_its_share_of_twelve_bytes_a_parameter(saved, stage):
    counted = memory.per_rank(
        tiny.config(**held.WIDE), MicroBatch(1, 20), ZeroConfig(stage=stage), ranks=2
    )
    files = sorted(saved.glob(f"{stage}/zero/*optim_states.pt"))
    assert len(files) == 2
    for file in files:
        assert file.stat().st_size == pytest.approx(counted.optimiser, rel=NAMES_AND_SHAPES)


@pytest.mark.slow
@pytest.mark.parametrize("stage", [1, 2])
def test_a_resumable_checkpoint_has_the_bytes_that_were_counted(saved, stage):
    found = sum(file.stat().st_size for file in saved.glob(f"{stage}/zero/*.pt"))
    counted = memory.checkpoint_bytes(tiny.config(**held.WIDE), "resumable")
    assert found == pytest.approx(counted, rel=NAMES_AND_SHAPES)
