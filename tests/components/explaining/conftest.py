"""A small run with its index, opened once for all tests that explain or steer."""

from pathlib import Path

import pytest

from components.explaining.opened import Opened, open_checkpoint
from tests.components.explained_index import write_index
from tests.components.explained_run import Run, write_run


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_run(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="session")
def index(small: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_index(small, tmp_path_factory.mktemp("index"))


@pytest.fixture(scope="session")
def opened(small: Run, index: Path) -> Opened:
    return open_checkpoint(small.checkpoint, index=index, names=None, calibration=None)
