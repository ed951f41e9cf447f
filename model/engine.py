"""What the training loop asks of the machinery below it, and the plain one: one process, torch.

`model.zero` is the other engine. Both hold the same module, optimiser and clipping.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

import torch
from safetensors.torch import load_file
from torch import Tensor

from model.device import here, moved, multiplies_bfloat16
from model.hashed_file import Written, write_tensors
from model.language_model import LanguageModel
from model.objective import Example, Objective
from model.optim import adamw, set_learning_rate
from model.term_norms import gradient_norms
from model.terms import Term
from model.train_config import TrainingConfig

PLAIN_FILE = "plain.safetensors"


class Engine(Protocol):
    """Forward, backward, step, over one rank or many."""

    rank: int
    world: int
    lm: LanguageModel

    def sums(self, example: Example) -> Tensor:
        """The sums of this micro-batch's terms, on the processor whatever the network is on."""
        ...

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of a micro-batch. Ranks' and micro-batches' losses are summed."""
        ...

    def step(self, lr: float) -> float:
        """Clip and step; returns the gradient's norm. If it is not finite, nothing changes."""
        ...

    def gradient_norms(self, examples: Sequence[Example], weights_S: Tensor) -> dict[Term, float]:
        """Norm of each term's gradient over these micro-batches of all ranks; changes nothing."""
        ...

    def total(self, values: Tensor) -> Tensor:
        """Sum of a small vector over the ranks."""
        ...

    def save(self, folder: Path) -> Mapping[str, Written]:
        """Weights and optimiser into `folder`, which is there and empty.

        Every rank calls it and returns what it wrote itself, by name relative to the folder.
        """
        ...

    def restore(self, folder: Path) -> None:
        """Weights and optimiser as they were when they were saved. Every rank calls it."""
        ...

    def finished(self) -> LanguageModel:
        """The network in float32, on rank 0; the others, who help to gather it, get its shapes."""
        ...


class PlainEngine:
    """One process: float32 weights, matrix products in bfloat16 if so configured."""

    def __init__(self, lm: LanguageModel, config: TrainingConfig) -> None:
        self.rank = 0
        self.world = 1
        self._device = here()
        self.lm = prepared(lm, config)
        self._objective = Objective(lm, config.objective)
        self._optimizer = adamw(lm, config.optim)
        self._clip_norm = config.optim.clip_norm
        self._low_precision = dtype(config.dtype) == torch.bfloat16

    def sums(self, example: Example) -> Tensor:
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._low_precision):
            found: Tensor = self._objective(moved(example, self._device))
        return found.cpu()

    def backward(self, loss: Tensor) -> None:
        torch.autograd.backward(loss)

    def step(self, lr: float) -> float:
        norm = torch.nn.utils.clip_grad_norm_(self.lm.parameters(), self._clip_norm)
        if torch.isfinite(norm):
            set_learning_rate(self._optimizer, lr)
            self._optimizer.step()
        self._optimizer.zero_grad()
        return float(norm)

    def gradient_norms(self, examples: Sequence[Example], weights_S: Tensor) -> dict[Term, float]:
        return gradient_norms(
            self.sums, list(self.lm.parameters()), examples, weights_S, add_ranks=lambda part: part
        )

    def total(self, values: Tensor) -> Tensor:
        return values

    def save(self, folder: Path) -> Mapping[str, Written]:
        tensors = {f"weight.{name}": tensor for name, tensor in self.lm.state_dict().items()}
        for name, parameter in self.lm.named_parameters():
            for kind, tensor in self._optimizer.state.get(parameter, {}).items():
                tensors[f"{kind}.{name}"] = tensor
        return {PLAIN_FILE: write_tensors(tensors, folder / PLAIN_FILE)}

    def restore(self, folder: Path) -> None:
        tensors = load_file(folder / PLAIN_FILE, device=str(self._device))
        self.lm.load_state_dict(_part(tensors, "weight"))
        by_name = dict(self.lm.named_parameters())
        self._optimizer.state.clear()
        for kind in ("step", "exp_avg", "exp_avg_sq"):
            for name, tensor in _part(tensors, kind).items():
                self._optimizer.state[by_name[name]][kind] = tensor.to(self._device)

    def finished(self) -> LanguageModel:
        return self.lm.eval().cpu()


def _part(tensors: Mapping[str, Tensor], kind: str) -> dict[str, Tensor]:
    """The tensors of one kind, by the names of their parameters."""
    start = f"{kind}."
    return {name.removeprefix(start): t for name, t in tensors.items() if name.startswith(start)}


def dtype(name: Literal["auto", "float32", "bfloat16"]) -> torch.dtype:
    """The dtype to compute in; `auto` asks the device."""
    if name == "auto":
        return torch.bfloat16 if multiplies_bfloat16(here()) else torch.float32
    return torch.bfloat16 if name == "bfloat16" else torch.float32


def prepared(lm: LanguageModel, config: TrainingConfig) -> LanguageModel:
    """The network on this process's device, ready to be trained there."""
    device = here()
    # Heads and losses multiply in float32. A GPU may round their factors (TF32), but only where
    # the rest of the network is rounded further still.
    rounded = device.type == "cuda" and dtype(config.dtype) == torch.bfloat16
    torch.set_float32_matmul_precision("high" if rounded else "highest")
    if config.compiled:
        for layer in lm.backbone.layers:
            layer.compile()  # in place: weights keep their names
    return lm.train().to(device)
