"""Tagging is killed at random calls of the language model and goes on."""

import random
from pathlib import Path

import pytest

from tests.components.atlas.killed_tagging import killed_then_resumed

pytestmark = pytest.mark.chaos


def test_twenty_kills_at_random_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(0)
    for trial in range(20):
        folder = tmp_path / str(trial)
        folder.mkdir()
        killed_then_resumed(folder, n_chunks=40, nth=draw.randint(1, 45), monkeypatch=monkeypatch)
