"""A rank that does as its job says: what tests of `components.launch` start under torchrun."""

import json
import os
import sys
from pathlib import Path

from components import launch
from model.endings import DivergedError
from model.events import Event


def main() -> None:
    path = Path(sys.argv[1])
    job = json.loads(path.read_text())
    rank = int(os.environ["RANK"])
    with launch.reporting(path.parent, rank) as events:
        events(Event(step=1, total_steps=2, metrics={"world": float(os.environ["WORLD_SIZE"])}))
        if job["diverges"]:
            raise DivergedError("3 steps in a row were not finite")
        if rank == job["fails"]:
            raise ValueError(f"rank {rank} met its end")
        events(Event(step=2, total_steps=2, metrics={}))


if __name__ == "__main__":
    main()
