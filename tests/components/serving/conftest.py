"""A tiny network, opened once: random and loud, with six concepts that have something to move."""

import pytest

from components.explaining.opened import Opened, open_checkpoint
from tests.components.explained_run import Run, write_run


@pytest.fixture(scope="session")
def served_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_run(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="session")
def opened(served_run: Run) -> Opened:
    return open_checkpoint(served_run.checkpoint, index=None, names=None, calibration=None)
