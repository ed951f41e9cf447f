"""Ctrl-C in every stage: closed records, no half artifact, and a command that goes on."""

import pytest

from pipelines.again import COMPONENTS
from tests.pipelines.interrupting import run_until

TASKS = {"check": "check-documents", "measure": None}
"""Stages with more than one task: which of them is interrupted, None for the first that begins."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.mark.chaos
@pytest.mark.parametrize("stage", [stage for stage in COMPONENTS if stage != "measure"])
def test_ctrl_c_leaves_a_clean_state_and_the_way_on(stage, runs):
    task = TASKS.get(stage, stage)
    found = run_until(task, runs)
    assert found.exit_code == 130
    assert "clearstory run debug" in found.output
    assert found.stages[task].status == "KILLED"
    assert not [name for name, record in found.stages.items() if record.status == "RUNNING"]
    assert not list((runs / "store" / "attempts").iterdir())
