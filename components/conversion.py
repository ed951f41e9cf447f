"""A savepoint for another number of ranks: `python -m components.conversion FOLDER --ranks N`.

One process reads what the ranks wrote and writes the state whole, as a new savepoint beside the old
one; the next run that asks for these ranks goes on from it (docs/decisions/0005).
"""

import argparse
import shutil
from pathlib import Path

from components import savepoints
from components.savepoints import Savepoint, SavepointError
from components.training_state import Topology
from model import zero

_READS = {0: "whole", 1: "split optimiser", 2: "split optimiser", 3: "split weights"}
"""What a savepoint of each ZeRO stage holds; a stage reads those of its own kind."""


def convert(folder: Path, asked: Topology) -> Savepoint:
    """The savepoint in `folder`, verified and rewritten for `asked`. The old one stays."""
    old = savepoints.opened(folder)
    state = old.state
    saved = state.topology.zero_stage
    if _READS[saved] != _READS[asked.zero_stage]:
        raise SavepointError(
            f"{folder} was saved under ZeRO stage {saved}, which stage {asked.zero_stage} cannot "
            f"read: stages 1 and 2 read each other's, 0 and 3 each its own. Ask for --zero-stage "
            f"{saved}, and set zero.stage of the stage's config to it; the number of ranks is free"
        )
    ranks = folder / zero.RANKS_FOLDER
    attempt = folder.parent / f"attempt-{old.step:09d}-converted"
    savepoints.begin(attempt)
    if not ranks.is_dir():  # converted before: any number of ranks can open it
        shutil.copytree(folder / zero.UNIVERSAL_FOLDER, attempt / zero.UNIVERSAL_FOLDER)
    elif saved == 0:  # each rank had all of it
        shutil.copytree(ranks, attempt / zero.RANKS_FOLDER)
    else:
        zero.convert(folder, attempt)
    return savepoints.commit(attempt, state.model_copy(update={"topology": asked}), {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="a savepoint")
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--zero-stage", type=int, choices=(0, 1, 2, 3))
    parser.add_argument("--micro-batches", type=int)
    given = parser.parse_args()
    saved = savepoints.opened(given.folder).state.topology
    asked = Topology(
        ranks=given.ranks,
        zero_stage=saved.zero_stage if given.zero_stage is None else given.zero_stage,
        micro_batches=given.micro_batches or saved.micro_batches,
    )
    made = convert(given.folder, asked)
    print(
        f"{made.folder}\nRun the same recipe with these ranks: it goes on after step {made.step}."
    )


if __name__ == "__main__":
    main()
