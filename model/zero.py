"""The engine of many ranks: DeepSpeed ZeRO over gloo or NCCL. The only importer of deepspeed.

Losses arrive already divided by global counts, so ranks and micro-batches must be *summed*;
DeepSpeed averages both, which the factor in `backward` undoes.
"""

from typing import Literal

import deepspeed
import torch
from deepspeed import comm
from deepspeed.utils import safe_get_full_fp32_param
from torch import Tensor

from model.engine import dtype
from model.language_model import LanguageModel
from model.objective import Example, Objective
from model.optim import adamw, set_learning_rate
from model.train_config import TrainingConfig

Stage = Literal[1, 2, 3]
"""What is split over the ranks: optimiser states (1), also gradients (2), also weights (3)."""

BUCKET = 200_000_000
"""Elements reduced or gathered at a time; the default of 5e8 holds several gigabytes more."""


class ZeroEngine:
    """One rank of a world started by torchrun (`components.launch`)."""

    def __init__(self, lm: LanguageModel, config: TrainingConfig, stage: Stage) -> None:
        deepspeed.init_distributed(dist_backend="gloo", verbose=False)
        self.rank: int = comm.get_rank()
        self.world: int = comm.get_world_size()
        self.lm = lm.train()
        self._micro_batches = config.micro_batches
        self._engine, self._optimizer, _, _ = deepspeed.initialize(
            model=Objective(lm, config.objective),
            optimizer=adamw(lm, config.optim),
            config=settings(config, stage, self.world),
        )

    def sums(self, example: Example) -> Tensor:
        found: Tensor = self._engine(example)
        return found

    def backward(self, loss: Tensor) -> None:
        self._engine.backward(loss * float(self.world * self._micro_batches))
        if not self._engine.is_gradient_accumulation_boundary():
            self._engine.step()

    def step(self, lr: float) -> float:
        set_learning_rate(self._optimizer, lr)
        self._engine.step()
        norm = self._engine.get_global_grad_norm()
        return float("nan") if norm is None or norm < 0 else float(norm)

    def total(self, values: Tensor) -> Tensor:
        summed = values.clone()
        comm.all_reduce(summed)
        return summed

    def finished(self) -> LanguageModel:
        lm = LanguageModel(self.lm.config)
        with torch.no_grad():
            for whole, part in zip(lm.parameters(), self.lm.parameters(), strict=True):
                whole.copy_(safe_get_full_fp32_param(part))
        return lm.eval()


def settings(config: TrainingConfig, stage: Stage, world: int) -> dict[str, object]:
    """DeepSpeed's own config for this optimisation."""
    share = world * config.micro_batches
    if config.batch_sequences % share:
        raise ValueError(
            f"batch_sequences is {config.batch_sequences}, which {world} ranks with "
            f"{config.micro_batches} micro-batches each cannot share evenly; try "
            f"{-(-config.batch_sequences // share) * share}"
        )
    return {
        "train_micro_batch_size_per_gpu": config.batch_sequences // share,
        "gradient_accumulation_steps": config.micro_batches,
        "gradient_clipping": config.optim.clip_norm,
        "bf16": {"enabled": dtype(config.dtype) == torch.bfloat16},
        "communication_data_type": "fp32",
        "zero_optimization": {
            "stage": stage,
            "overlap_comm": False,
            "contiguous_gradients": True,
            "reduce_bucket_size": BUCKET,
            "allgather_bucket_size": BUCKET,
        },
        "zero_allow_untested_optimizer": True,
        "steps_per_print": 1_000_000_000,
    }


def close() -> None:
    """Leave the process group, so that ranks end together."""
    if comm.is_initialized():
        comm.destroy_process_group()


def build_operator() -> None:
    """Join a world, which builds DeepSpeed's shared-memory operator where there is none yet."""
    deepspeed.init_distributed(dist_backend="gloo", verbose=False)
    close()


if __name__ == "__main__":
    build_operator()
