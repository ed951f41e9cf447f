"""Memory of one rank and bytes of a checkpoint from configs alone (ZeRO stages 0-3). No torch.

    weights       bytes of a weight · P             split over the ranks from stage 3 on
    gradients     4 · P                             split from stage 2 on
    optimiser     12 · P                            split from stage 1 on, or moved off
    activations   what the backward pass needs of the backbone, for one micro-batch
    concepts      states of asked rows, votes of chunks, one tile of concept logits
    head          one tile of vocabulary logits and its gradient
    buffers       what travels between ranks at a time

P counts parameters, D is the width, F the MLP's, G the key-value heads' together, T the length.
Activations are those of eager execution; a compiler that fuses keeps less. Masks, the allocator's
fragments and the libraries themselves are not counted: leave them a share of the device.
"""

from dataclasses import dataclass
from typing import Literal

from model import accounting
from model.config import BackboneConfig, BottleneckConfig, LanguageModelConfig
from model.zero_config import ZeroConfig

LIVE = 1_000_000_000
"""Weights that stage 3 holds whole at a time, at most."""

TILE_ROWS = 256
"""Rows whose logits over all concepts, or over the vocabulary, exist at a time."""

TOKENS_PER_CHUNK = 110
"""The paper's corpus: about eleven billion chunks of 1.35e12 tokens."""


@dataclass(frozen=True)
class Precision:
    """Bytes that one parameter takes, by what they are for."""

    weights: int
    gradients: int = 4
    """Accumulated in float32 whatever the weights are in."""

    optimiser: int = 12
    """A float32 copy of the weight, and AdamW's two moments. DeepSpeed keeps the copy in float32
    runs as well."""


BFLOAT16 = Precision(weights=2)
FLOAT32 = Precision(weights=4)


@dataclass(frozen=True)
class Memory:
    """Bytes of one rank, by what they are for."""

    weights: int
    gradients: int
    optimiser: int
    activations: int
    concepts: int
    head: int
    buffers: int

    offloaded: int
    """States in the host's memory instead; not part of `total`."""

    @property
    def states(self) -> int:
        """What stays from step to step."""
        return self.weights + self.gradients + self.optimiser

    @property
    def total(self) -> int:
        return self.states + self.activations + self.concepts + self.head + self.buffers


@dataclass(frozen=True)
class MicroBatch:
    """What one rank computes at a time."""

    sequences: int
    length: int
    asked: float = 0.5
    """Share of its tokens that are asked for."""

    @property
    def tokens(self) -> int:
        return self.sequences * self.length


def per_rank(
    config: LanguageModelConfig,
    batch: MicroBatch,
    zero: ZeroConfig,
    *,
    ranks: int,
    precision: Precision = BFLOAT16,
) -> Memory:
    """Memory of the fullest rank."""
    n_parameters = accounting.parameters(config).total
    weights = _share(precision.weights * n_parameters, ranks if zero.stage >= 3 else 1)
    optimiser = _share(precision.optimiser * n_parameters, ranks if zero.stage >= 1 else 1)
    moved = (optimiser if zero.offload != "none" else 0) + (
        weights if zero.offload == "optimizer_and_parameters" else 0
    )
    return Memory(
        weights=0 if zero.offload == "optimizer_and_parameters" else weights,
        gradients=_share(precision.gradients * n_parameters, ranks if zero.stage >= 2 else 1),
        optimiser=0 if zero.offload != "none" else optimiser,
        activations=_activations(config.backbone, batch, precision, zero),
        concepts=_concepts(config, batch),
        head=_head(config, batch),
        buffers=_buffers(n_parameters, zero, ranks, precision),
        offloaded=moved,
    )


def activation_bytes_per_token(config: BackboneConfig, precision: Precision) -> int:
    """What one layer keeps of one token for its backward pass.

    Inputs and outputs of the matrix products in the weights' type: 7 D + 6 G + 4 F numbers.
    Normalisation computes in float32: it keeps its products, and where the weights are narrower its
    widened inputs too.
    """
    width, grouped = config.width, config.n_kv_heads * config.head_width
    products = 7 * width + 6 * grouped + 4 * config.mlp_width
    widened = 6 * width + 2 * grouped if precision.weights < 4 else 5 * width + grouped
    return precision.weights * products + 4 * widened


def checkpoint_bytes(config: LanguageModelConfig, kind: Literal["weights", "resumable"]) -> int:
    """Bytes on disk: bfloat16 weights alone, or with the optimiser's states beside them. (Stage 3
    leaves the weights to the optimiser's own copy.)"""
    per_parameter = BFLOAT16.weights + (BFLOAT16.optimiser if kind == "resumable" else 0)
    return per_parameter * accounting.parameters(config).total


def _activations(
    config: BackboneConfig, batch: MicroBatch, precision: Precision, zero: ZeroConfig
) -> int:
    layer = activation_bytes_per_token(config, precision)
    if zero.activation_checkpointing:
        return batch.tokens * (config.n_layers * precision.weights * config.width + layer)
    return batch.tokens * config.n_layers * layer


def _concepts(config: LanguageModelConfig, batch: MicroBatch) -> int:
    """In float32: five states a row (hidden, known, unknown, of its labels, composed), the kept
    concepts, a vote a chunk and concept, a tile of logits and its gradient."""
    if config.bottleneck is None:
        return 0
    bottleneck: BottleneckConfig = config.bottleneck
    n_rows = round(batch.asked * batch.tokens)
    kept = 8 * (bottleneck.top_k + bottleneck.top_k_unknown)
    n_chunks = -(-batch.tokens // TOKENS_PER_CHUNK)
    tile = 8 * min(TILE_ROWS, n_rows) * max(bottleneck.n_known, bottleneck.n_unknown)
    rows = n_rows * (20 * config.backbone.width + kept)
    return rows + 4 * n_chunks * bottleneck.n_known + tile


def _head(config: LanguageModelConfig, batch: MicroBatch) -> int:
    """A tile of float32 logits and its gradient, and the gradient of every row's state."""
    n_rows = round(batch.asked * batch.tokens)
    tile = 8 * min(TILE_ROWS, n_rows) * config.backbone.vocab_size
    return tile + 4 * n_rows * config.backbone.width


def _buffers(n_parameters: int, zero: ZeroConfig, ranks: int, precision: Precision) -> int:
    if ranks == 1:
        return 0
    bucket = min(n_parameters, zero.bucket_elements)
    reduced = precision.gradients * bucket * (2 if zero.overlap else 1)
    if zero.stage < 3:
        return reduced + precision.weights * bucket
    return reduced + precision.weights * min(n_parameters, LIVE)


def _share(total: int, parts: int) -> int:
    return -(-total // parts)
