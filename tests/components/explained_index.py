"""An index of the made-up run, fitted as little as can be: what it finds is no matter."""

from pathlib import Path

from components.index.config import BuildConfig
from components.index.stage import build
from tests.components.explained_run import Run


def write_index(run: Run, folder: Path) -> Path:
    """Index the run's training chunks into a folder that is there."""
    config = BuildConfig(
        length=64, n_fitted=30, n_held_back=5, n_held_out=6, hidden_width=8, n_steps=2,
        batch_pairs=16, batch_sequences=4, bootstrap_draws=20,
    )  # fmt: skip
    corpus = run.corpus
    build(run.checkpoint, run.tokens, corpus.documents, corpus.chunks, run.vectors, folder, config)
    return folder
