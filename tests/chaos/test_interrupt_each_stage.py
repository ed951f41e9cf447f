"""Ctrl-C in every stage: closed records, no half artifact, and a command that goes on."""

import shutil

import pytest

from components.scaling.ladder import plan
from pipelines.again import COMPONENTS
from pipelines.debug import debug
from tests.pipelines.interrupting import interrupt_in

TASKS = {"check": "check-documents", "measure": f"measure-{plan(debug().ladder)[0].name}"}
"""Stages with more than one task: which of them is interrupted."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.mark.chaos
@pytest.mark.parametrize("stage", list(COMPONENTS))
def test_ctrl_c_leaves_a_clean_state_and_the_way_on(stage, runs):
    task = TASKS.get(stage, stage)
    # An earlier case may have come past this stage: what it left would be reused, never begun.
    shutil.rmtree(runs / "store" / "stages" / stage, ignore_errors=True)
    found = interrupt_in(task, ["run", "debug"], runs)
    assert found.exit_code == 130
    assert f"resume with: clearstory run debug --runs {runs}" in found.output
    assert task in found.stages
    assert not [name for name, record in found.stages.items() if record.status == "RUNNING"]
    assert not list((runs / "store" / "attempts").iterdir())
