"""What the training loop asks of the machinery below it, and the plain one: one process, torch.

`model.zero` is the other engine. Both hold the same module, optimiser and clipping.
"""

from typing import Literal, Protocol

import torch
from torch import Tensor

from model.language_model import LanguageModel
from model.objective import Example, Objective
from model.optim import adamw, set_learning_rate
from model.train_config import TrainingConfig


class Engine(Protocol):
    """Forward, backward, step, over one rank or many."""

    rank: int
    world: int
    lm: LanguageModel

    def sums(self, example: Example) -> Tensor:
        """The sums of this micro-batch's terms."""
        ...

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of a micro-batch. Ranks' and micro-batches' losses are summed."""
        ...

    def step(self, lr: float) -> float:
        """Clip and step; returns the gradient's norm. If it is not finite, nothing changes."""
        ...

    def total(self, values: Tensor) -> Tensor:
        """Sum of a small vector over the ranks."""
        ...

    def finished(self) -> LanguageModel:
        """The network in float32, on every rank."""
        ...


class PlainEngine:
    """One process: float32 weights, matrix products in bfloat16 if so configured."""

    def __init__(self, lm: LanguageModel, config: TrainingConfig) -> None:
        self.rank = 0
        self.world = 1
        self.lm = lm.train()
        self._objective = Objective(lm, config.objective)
        self._optimizer = adamw(lm, config.optim)
        self._clip_norm = config.optim.clip_norm
        self._low_precision = dtype(config.dtype) == torch.bfloat16

    def sums(self, example: Example) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=self._low_precision):
            found: Tensor = self._objective(example)
        return found

    def backward(self, loss: Tensor) -> None:
        torch.autograd.backward(loss)

    def step(self, lr: float) -> float:
        norm = torch.nn.utils.clip_grad_norm_(self.lm.parameters(), self._clip_norm)
        if torch.isfinite(norm):
            set_learning_rate(self._optimizer, lr)
            self._optimizer.step()
        self._optimizer.zero_grad()
        return float(norm)

    def total(self, values: Tensor) -> Tensor:
        return values

    def finished(self) -> LanguageModel:
        return self.lm.eval()


def dtype(name: Literal["auto", "float32", "bfloat16"]) -> torch.dtype:
    """The dtype to compute in; `auto` asks the processor."""
    if name == "auto":
        fast = torch.cpu.get_capabilities().get("avx512_bf16", False)
        return torch.bfloat16 if fast else torch.float32
    return torch.bfloat16 if name == "bfloat16" else torch.float32
