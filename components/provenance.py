"""How an artifact was made: when, where, in how many seconds, from what. Outside every digest.

It lies in `made.json` beside the outputs of a committed stage, so it stays with them when another
run reuses them. `trail` follows it back from some artifacts to everything behind them.
"""

from collections.abc import Iterable
from pathlib import Path

from model.config import Config

MADE_FILE = "made.json"


class Provenance(Config):
    """The execution that wrote a stage's outputs."""

    task: str
    run_id: str
    commit: str
    host: str
    started: str
    """UTC, ISO 8601."""

    seconds: float
    """Wall time of the stage itself."""

    inputs: tuple[str, ...]
    """Folders of the artifacts and gate reports it read."""


def trail(artifacts: Iterable[Path]) -> list[Provenance]:
    """Every execution behind these artifacts, each once, in the order in which they began.

    Artifacts that lie outside a store have no provenance and end their branch.
    """
    found: dict[Path, Provenance] = {}
    waiting = [folder.parent for folder in artifacts]
    while waiting:
        folder = waiting.pop()
        if folder in found or not (folder / MADE_FILE).is_file():
            continue
        found[folder] = Provenance.model_validate_json((folder / MADE_FILE).read_text())
        waiting += [Path(read).parent for read in found[folder].inputs]
    return sorted(found.values(), key=lambda made: (made.started, made.task))
