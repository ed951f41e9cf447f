"""A small run with its index, opened once for all tests that explain or steer."""

from pathlib import Path

import pytest

from components.explaining.opened import Opened, open_checkpoint
from components.index.config import BuildConfig
from components.index.stage import build
from components.nearest_config import LayoutConfig
from tests.components.explained_run import Run, write_run


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_run(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="session")
def index(small: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, corpus = tmp_path_factory.mktemp("index"), small.corpus
    config = BuildConfig(
        length=64, n_fitted=30, n_held_back=5, n_held_out=6, hidden_width=8, n_steps=2,
        batch_pairs=16, batch_sequences=4, bootstrap_draws=20,
        layout=LayoutConfig(recall_queries=4),
    )  # fmt: skip
    build(
        small.checkpoint, small.tokens, corpus.documents, corpus.chunks, small.vectors, folder,
        config,
    )  # fmt: skip
    return folder


@pytest.fixture(scope="session")
def opened(small: Run, index: Path) -> Opened:
    return open_checkpoint(small.checkpoint, index=index, names=None, calibration=None)
