"""What two ranks of DeepSpeed hold of a network, by what they save: `test_memory_ranks`.

python -m tests.model.held job.json     under torchrun
"""

import os
import sys
from pathlib import Path

from components import launch
from model.language_model import LanguageModel
from model.train import example_at
from model.zero import ZeroEngine, close
from model.zero_config import ZeroConfig
from tests.model import tiny

WIDE = {"width": 64, "mlp_width": 256, "rank": 16}
"""Wide enough that numbers outweigh the names that files hold beside them."""

STAGES = (1, 2, 3)


def lm() -> LanguageModel:
    return LanguageModel(tiny.config(**WIDE))


def _work(folder: Path) -> None:
    for stage in STAGES:
        training = tiny.training(dtype="bfloat16")
        engine = ZeroEngine(lm(), training, ZeroConfig(stage=stage, whole_elements=0))
        batch = tiny.batch_at(0).part(slice(engine.rank, None, engine.world))
        example = example_at(batch, engine, training, 0)
        engine.backward(engine.sums(example).sum())
        engine.step(1e-3)
        engine.save(folder / f"{stage}")
    close()


def main() -> None:
    path = Path(sys.argv[1])
    with launch.reporting(path.parent, int(os.environ["RANK"])):
        _work(path.parent)


if __name__ == "__main__":
    main()
