"""Where weights come from, one tensor at a time: drawn from a seed, or read from a checkpoint.

    start = fresh(config, seed)           or  checkpoint.opened(folder)
    start.whole()                         a network in the processor's memory
    start.bare(), start.weights()         its shapes without memory, and the values in their order

Who splits a network over ranks splits each tensor as it comes, so that no rank ever holds more than
one whole (`model.zero`). Either way the bytes are the same.

Shape suffixes: K known concept
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model.bottleneck import starting_bias
from model.config import LanguageModelConfig
from model.language_model import LanguageModel, start_values

BIAS = "bottleneck.known.bias_K"


@dataclass(frozen=True)
class Start:
    """The weights that an optimisation begins with."""

    config: LanguageModelConfig

    weights: Callable[[], Iterator[tuple[str, Tensor]]]
    """Name and values of every parameter in the network's own order, in float32, on the
    processor."""

    def bare(self) -> LanguageModel:
        """The network's shapes, on no device."""
        return bare(self.config)

    @torch.no_grad()
    def whole(self) -> LanguageModel:
        """The network with its weights."""
        lm = self.bare().to_empty(device="cpu")
        for (name, parameter), (found, values) in zip(
            lm.named_parameters(), self.weights(), strict=True
        ):
            assert name == found, f"{found} came where {name} was due"
            parameter.copy_(values)
        return lm


def bare(config: LanguageModelConfig) -> LanguageModel:
    """A network that takes no memory: shapes and names alone."""
    with torch.device("meta"):
        return LanguageModel(config)


def fresh(
    config: LanguageModelConfig,
    seed: int,
    prevalence: Sequence[float] = (),
    tokens_per_chunk: float = 1.0,
) -> Start:
    """What `LanguageModel(config, seed)` starts with; biases at the prevalences, if there are."""

    def weights() -> Iterator[tuple[str, Tensor]]:
        generator = torch.Generator().manual_seed(seed)
        for name, shape in bare(config).named_parameters():
            values = torch.empty(shape.shape)
            start_values(name, values, config, generator)
            if name == BIAS and prevalence:
                values = starting_bias(torch.tensor(prevalence), tokens_per_chunk)
            yield name, values

    return Start(config, weights)
