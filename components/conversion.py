"""A savepoint for another number of ranks: `python -m components.conversion FOLDER --ranks N`.

One process reads what the ranks wrote and writes the state whole, as a new savepoint beside the old
one; the next run that asks for these ranks goes on from it (docs/decisions/0005).
"""

import argparse
from pathlib import Path

from components import savepoints
from components.savepoints import Savepoint, SavepointError
from components.training_state import Topology
from model import zero


def convert(folder: Path, asked: Topology) -> Savepoint:
    """The savepoint in `folder`, verified and rewritten for `asked`. The old one stays."""
    old = savepoints.opened(folder)
    state = old.state
    if (state.topology.zero_stage == 3) != (asked.zero_stage == 3):
        raise SavepointError(
            f"{folder} was saved under ZeRO stage {state.topology.zero_stage}, which stage "
            f"{asked.zero_stage} cannot read: stages 1 and 2 read each other's, stage 3 its own"
        )
    if not (folder / zero.RANKS_FOLDER).is_dir():
        raise SavepointError(f"{folder} is converted already: any number of ranks can open it")
    attempt = folder.parent / f"attempt-{old.step:09d}-converted"
    savepoints.begin(attempt)
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
