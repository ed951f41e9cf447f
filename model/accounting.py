"""Parameters and FLOPs of a network from its config alone (paper §8, appendix G). No torch.

    training FLOPs per token = 6 · (backbone + V·D + module) + 12 · layers · D · T

The vocabulary head and the concept module are counted, the embedding lookup is not, attention is
counted whole although half of it is masked: the convention that gives the paper's 7.6e22.
"""

from dataclasses import dataclass
from typing import Literal

from model.config import BackboneConfig, BottleneckConfig, LanguageModelConfig

Activations = Literal["dense", "top_k"]


@dataclass(frozen=True)
class Parameters:
    """Numbers in the tensors of a network. A tied head is the embedding, counted once."""

    embedding: int
    head: int
    """Of a head of its own; 0 where it is the embedding."""

    backbone: int
    known: int
    unknown: int

    @property
    def total(self) -> int:
        return self.embedding + self.head + self.backbone + self.known + self.unknown


def parameters(config: LanguageModelConfig) -> Parameters:
    """Count every parameter."""
    width = config.backbone.width
    known = unknown = 0
    if config.bottleneck is not None:
        bottleneck = config.bottleneck
        known = bottleneck.n_known * (2 * width + int(bottleneck.known_bias))
        unknown = 2 * _unknown_matrix(bottleneck, width)
    embedding = config.backbone.vocab_size * width
    return Parameters(
        embedding=embedding,
        head=0 if config.backbone.tied else embedding,
        backbone=_backbone(config.backbone),
        known=known,
        unknown=unknown,
    )


def training_flops_per_token(
    config: LanguageModelConfig,
    length: int,
    *,
    activations: Activations = "dense",
    unknown_embeddings: Literal["counted", "left_out"] = "counted",
) -> float:
    """FLOPs of forward and backward for one token of a sequence of `length`."""
    backbone = config.backbone
    multiplied = parameters(config).backbone + backbone.vocab_size * backbone.width
    if config.bottleneck is not None:
        multiplied += _module(config.bottleneck, backbone.width, activations)
        if unknown_embeddings == "left_out":
            multiplied -= _unknown_matrix(config.bottleneck, backbone.width)
    return 6.0 * multiplied + 12.0 * backbone.n_layers * backbone.width * length


def _backbone(config: BackboneConfig) -> int:
    width, head_width = config.width, config.head_width
    attention = width * (width + 2 * config.n_kv_heads * head_width) + width * width
    mlp = 3 * width * config.mlp_width
    norms = 2 * width + 2 * head_width * int(config.qk_norm)
    return config.n_layers * (attention + mlp + norms) + width


def _module(config: BottleneckConfig, width: int, activations: Activations) -> int:
    """Multiplications of the concept module for one token."""
    summed = config.n_known if activations == "dense" else config.top_k
    known = config.n_known * width + summed * width
    return known + 2 * _unknown_matrix(config, width)


def _unknown_matrix(config: BottleneckConfig, width: int) -> int:
    """Numbers in the unknown predictor, or in the unknown embeddings."""
    if config.rank is None:
        return config.n_unknown * width
    return config.rank * (config.n_unknown + width)
