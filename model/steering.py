"""Steering and interventions: change what a concept does, and nothing else (paper §6.2).

    direction    e = Σ K_c / ‖Σ K_c‖                                 a concept, or a group
    injection    h ← h + γ e after every layer from `first_layer` on          eq. 18
    calibration  γ = τ / peak,  peak = max_y e·W_y                            eq. 19
    suppression  γ < 0, and ℓ_v ← ℓ_v − |γ| · max(0, e·W_v)                   eq. 20-21

The common strength τ is a shift in logits of the concept's own top token. Plain negative injection
promotes what is anti-aligned with the concept; the mask lowers its tokens and raises none.

`override` sets activations at the bottleneck: the parts that are not set stay frozen, so that the
change of every logit is exactly the predicted one (the condition of Agreement).

Shape suffixes used in this file:
    B row   T position   D width   V vocabulary   K known concept
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from model.bottleneck import Decomposition
from model.language_model import LanguageModel
from model.topk import TopConcepts


@dataclass(frozen=True)
class Change:
    """One row's wish: known concepts as a group, and τ in logits; below zero it suppresses."""

    concept_ids: tuple[int, ...]
    strength: float


@dataclass(frozen=True)
class Steering:
    """What generation adds to the states of a row and takes from its logits."""

    first_layer: int
    injection_BD: Tensor
    suppression_BV: Tensor
    """Never negative: suppression raises no logit."""


@torch.no_grad()
def steering(lm: LanguageModel, changes: Sequence[Change], first_layer: int) -> Steering:
    """Changes of a batch's rows, calibrated. A strength of 0 leaves its row as it was."""
    n_layers = lm.config.backbone.n_layers
    if not 0 <= first_layer < n_layers:
        raise ValueError(f"first_layer is {first_layer}, but layers are 0 … {n_layers - 1}")
    injections, masks = [], []
    for change in changes:
        direction_D = direction(lm, change.concept_ids)
        gain = calibration(lm, direction_D, change.strength)
        injections.append(gain * direction_D)
        masks.append(suppression_mask(lm, direction_D, max(0.0, -gain)))
    return Steering(first_layer, torch.stack(injections), torch.stack(masks))


def direction(lm: LanguageModel, concept_ids: Sequence[int]) -> Tensor:
    """Unit direction (D) of a known concept, or of several as one."""
    embedding_KD = lm.concepts.known.embedding_KD.detach().float()
    outside = [concept for concept in concept_ids if not 0 <= concept < len(embedding_KD)]
    if outside or not concept_ids:
        raise ValueError(
            f"concepts {list(concept_ids)} to steer, but known concepts are "
            f"0 … {len(embedding_KD) - 1}"
        )
    return functional.normalize(embedding_KD[list(concept_ids)].sum(0), dim=0)


def calibration(lm: LanguageModel, direction_D: Tensor, strength: float) -> float:
    """γ: how far along a direction its top token's logit moves by `strength`."""
    peak = float(lm.unembed(direction_D).detach().max())
    if peak <= 0:
        raise ValueError(
            f"the concept raises no token's logit (its peak is {peak:.3g}), so no strength can be "
            f"calibrated; it was never learned, choose another"
        )
    return strength / peak


def suppression_mask(lm: LanguageModel, direction_D: Tensor, strength: float) -> Tensor:
    """What is taken from each logit (V): the more, the more the token speaks for the concept."""
    return strength * lm.unembed(direction_D).clamp_min(0.0)


@torch.no_grad()
def override(
    lm: LanguageModel,
    hidden_BTD: Tensor,
    known: Mapping[int, float],
    unknown: Mapping[int, float],
) -> Tensor:
    """States (B, T, D) with some activations set: h + Σ (v − k) K + Σ (v − u) U, no more.

    Deltas start from the weight a concept really has: zero for one outside the top-k.
    """
    parts: Decomposition = lm.concepts(hidden_BTD)
    state_BTD = lm.composed(hidden_BTD).float()
    for concept, value in known.items():
        row_D = lm.concepts.known.embedding_KD[concept].float()
        state_BTD = state_BTD + (value - effective(parts.top, concept))[..., None] * row_D
    for concept, value in unknown.items():
        row_D = lm.concepts.unknown.rows(torch.tensor(concept))
        state_BTD = state_BTD + (value - effective(parts.top_unknown, concept))[..., None] * row_D
    return state_BTD


def effective(top: TopConcepts, concept: int) -> Tensor:
    """The weight (B, T) a concept has in the sum: its activation if kept, else zero."""
    return top.activations.where(top.ids == concept, 0.0).sum(-1)
