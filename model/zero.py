"""The engine of many ranks: DeepSpeed ZeRO over gloo or NCCL. The only importer of deepspeed.

Losses arrive already divided by global counts, so ranks and micro-batches must be *summed*;
DeepSpeed averages both, which the factor in `backward` undoes.
"""

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
from model.zero_config import ZeroConfig, settings


class ZeroEngine:
    """One rank of a world started by torchrun (`components.launch`)."""

    def __init__(self, lm: LanguageModel, config: TrainingConfig, zero: ZeroConfig) -> None:
        deepspeed.init_distributed(dist_backend="gloo", verbose=False)
        self.rank: int = comm.get_rank()
        self.world: int = comm.get_world_size()
        self.lm = lm.train()
        self._micro_batches = config.micro_batches
        self._engine, self._optimizer, _, _ = deepspeed.initialize(
            model=Objective(lm, config.objective),
            optimizer=adamw(lm, config.optim),
            config=settings(
                config,
                zero,
                world=self.world,
                low_precision=dtype(config.dtype) == torch.bfloat16,
            ),
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
