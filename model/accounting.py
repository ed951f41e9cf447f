"""Parameters and FLOPs of a network from its config alone (paper §8, appendix G). No torch.

    training FLOPs per token = 6 · (backbone + V·D + module) + 12 · layers · D · T

The vocabulary head and the concept module are counted, the embedding lookup is not, attention is
counted whole although half of it is masked: the convention that gives the paper's 7.6e22. `Work`
says what a step may leave out of it without changing a gradient. Memory is in `model.memory`.
"""

from dataclasses import dataclass
from typing import Literal

from model.config import BackboneConfig, BottleneckConfig, LanguageModelConfig

Activations = Literal["dense", "top_k"]

PAD_MULTIPLE = 16
"""Concepts are stored in multiples of this in the released checkpoints."""


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


def padded(config: LanguageModelConfig, multiple: int = PAD_MULTIPLE) -> LanguageModelConfig:
    """The same network with its concepts rounded up to a multiple, as the release stores them."""
    if config.bottleneck is None:
        return config
    sizes = {
        "n_known": _rounded_up(config.bottleneck.n_known, multiple),
        "n_unknown": _rounded_up(config.bottleneck.n_unknown, multiple),
    }
    return config.model_copy(update={"bottleneck": config.bottleneck.model_copy(update=sizes)})


@dataclass(frozen=True)
class Flops:
    """Floating-point operations for one token, by the part that does them."""

    backbone: float
    attention: float
    """The two products of queries, keys and values; everything else of it is `backbone`."""

    head: float
    known: float
    unknown: float

    @property
    def total(self) -> float:
        return self.backbone + self.attention + self.head + self.known + self.unknown


@dataclass(frozen=True)
class Work:
    """What a training step does of the convention's work, as shares of the tokens."""

    asked: float = 1.0
    """Tokens that are asked for. Head and concept module need no others: half of all, where the
    masking rates are spread evenly."""

    known_gradient: float = 1.0
    """Asked tokens from which a gradient returns through the known sum: those whose residual was
    dropped, since elsewhere the known part cancels in the state (method §3.6)."""

    activations: Activations = "dense"

    backbone_forwards: int = 1
    """2 where activations are not kept but computed again (activation checkpointing)."""


CONVENTION = Work()
"""Everything at every token: what budgets and utilisation are stated in."""


def forward_flops(
    config: LanguageModelConfig, length: int, *, activations: Activations = "dense"
) -> Flops:
    """Operations of one forward pass for one token of a sequence of `length`."""
    backbone, bottleneck = config.backbone, config.bottleneck
    known = unknown = 0
    if bottleneck is not None:
        known = (bottleneck.n_known + _summed(bottleneck, activations)) * backbone.width
        unknown = 2 * _unknown_matrix(bottleneck, backbone.width)
    return Flops(
        backbone=2.0 * parameters(config).backbone,
        attention=4.0 * backbone.n_layers * backbone.width * length,
        head=2.0 * backbone.vocab_size * backbone.width,
        known=2.0 * known,
        unknown=2.0 * unknown,
    )


def training_flops(config: LanguageModelConfig, length: int, work: Work = CONVENTION) -> Flops:
    """Operations of forward and backward for one token; backward is twice a forward."""
    forward = forward_flops(config, length, activations=work.activations)
    without_sum = 0.0
    if config.bottleneck is not None:
        summed = _summed(config.bottleneck, work.activations) * config.backbone.width
        without_sum = 4.0 * summed * (1.0 - work.known_gradient)
    passes = 2 + work.backbone_forwards
    return Flops(
        backbone=passes * forward.backbone,
        attention=passes * forward.attention,
        head=3.0 * work.asked * forward.head,
        known=work.asked * (3.0 * forward.known - without_sum),
        unknown=3.0 * work.asked * forward.unknown,
    )


def training_flops_per_token(
    config: LanguageModelConfig,
    length: int,
    *,
    activations: Activations = "dense",
    unknown_embeddings: Literal["counted", "left_out"] = "counted",
) -> float:
    """FLOPs of forward and backward for one token of a sequence of `length`, by the convention."""
    total = training_flops(config, length, Work(activations=activations)).total
    if config.bottleneck is not None and unknown_embeddings == "left_out":
        total -= 6.0 * _unknown_matrix(config.bottleneck, config.backbone.width)
    return total


def device_hours(flops: float, peak_flops: float, utilisation: float) -> float:
    """Hours of one device that multiplies at a share `utilisation` of its peak (FLOP/s)."""
    return flops / (peak_flops * utilisation) / 3600.0


def _backbone(config: BackboneConfig) -> int:
    width, head_width = config.width, config.head_width
    attention = width * (width + 2 * config.n_kv_heads * head_width) + width * width
    mlp = 3 * width * config.mlp_width
    norms = 2 * width + 2 * head_width * int(config.qk_norm)
    return config.n_layers * (attention + mlp + norms) + width


def _summed(config: BottleneckConfig, activations: Activations) -> int:
    """Known embeddings that are summed for one token."""
    return config.n_known if activations == "dense" else config.top_k


def _unknown_matrix(config: BottleneckConfig, width: int) -> int:
    """Numbers in the unknown predictor, or in the unknown embeddings."""
    if config.rank is None:
        return config.n_unknown * width
    return config.rank * (config.n_unknown + width)


def _rounded_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple
