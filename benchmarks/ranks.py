"""Tokens a second of the demo's training, by one rank of two threads and by two ranks of one.

    python -m benchmarks.ranks           both, one after the other, three turns

Wall seconds, since ranks wait for each other: they mean something on an idle machine alone, so
the load beside them is printed. Concepts, DeepSpeed's stage 1, batches made up once.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.training import batch_at, network, training
from components import launch
from components.launch import RanksConfig
from model.events import ignore
from model.language_model import LanguageModel
from model.train import fit
from model.zero_config import ZeroConfig

WORLDS = (RanksConfig(ranks=1, threads=2), RanksConfig(ranks=2, threads=1))
TURNS, TIMES = 3, 6


def rates(world: RanksConfig) -> list[float]:
    """Tokens a second of some turns, the first one left out: it warms everything up."""
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder) / "job.json"
        job.write_text("{}")
        launch.run("benchmarks.ranks", job, world, ignore)
        found: list[float] = json.loads((job.parent / "rates.json").read_text())
    return found[1:]


def work(folder: Path) -> None:
    """One rank: the same few steps some times, each timed."""
    from model.zero import ZeroEngine, close

    config = training()
    engine = ZeroEngine(LanguageModel(network("cdlm_concept")), config, ZeroConfig())
    found = []
    for _ in range(TIMES):
        began = time.perf_counter()
        fit(
            engine,
            config,
            lambda step: batch_at(step).part(slice(engine.rank, None, engine.world)),
            [],
        )
        found.append(config.n_steps * config.tokens_per_step / (time.perf_counter() - began))
    if engine.rank == 0:
        (folder / "rates.json").write_text(json.dumps(found))
    close()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work(Path(sys.argv[1]).parent)
    else:
        for _ in range(TURNS):
            for world in WORLDS:
                best = max(rates(world))
                print(
                    f"{world.ranks} rank(s) × {world.threads} thread(s)   {best:8,.0f} tokens/s   "
                    f"(best of {TIMES - 1}, load {os.getloadavg()[0]:.1f})",
                    flush=True,
                )
