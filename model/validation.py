"""The held-out loss while training goes on: the same question at every validation.

Shape suffixes: S term of the objective
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from model import forcing
from model.curve import means
from model.diffusion import Batch, fixed, question
from model.engine import Engine
from model.forcing import Chances
from model.objective import Example, counts
from model.terms import Term
from model.train_config import TrainingConfig

RATE = 0.5
SEED = 0


@torch.no_grad()
def validate(engine: Engine, config: TrainingConfig, held_out: Sequence[Batch]) -> Tensor:
    """Means of the terms on held-out batches, as they stand: nothing forced, nothing dropped."""
    sums_S, counts_S = torch.zeros(len(Term)), torch.zeros(len(Term))
    for batch in held_out:
        share = batch.part(slice(engine.rank, None, engine.world))
        if not len(share):
            continue
        example = Example(
            batch=share,
            asked=question(share, fixed(RATE), SEED, 0, engine.lm.config),
            forcing=forcing.draw(share, Chances(), seed=SEED, step=0),
            sparse=True,
        )
        sums_S += engine.sums(example)
        counts_S += counts(example, engine.lm, config.objective)
    return means(engine.total(sums_S), engine.total(counts_S))
