"""Concepts as directions: where one points, what it raises, how far to go for τ (paper §6.2).

    direction    e = Σ row_c / ‖Σ row_c‖        a known or an unknown concept, or a group of both
    calibration  γ = τ / peak,  peak = max_y e·W_y over tokens that text is made of     eq. 19
    mask         max over members c of |γ_c| · max(0, e_c·W_v), never negative       eq. 20-21

Rows of unknown concepts go through the factorised head: the full table is never built.

Shape suffixes used in this file:
    M member of a group   D width   V vocabulary
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from model.language_model import LanguageModel


@dataclass(frozen=True)
class ConceptRef:
    """One concept of either head."""

    kind: Literal["known", "unknown"]
    id: int

    def __str__(self) -> str:
        return f"{self.kind} concept {self.id}"


def known(concept_id: int) -> tuple[ConceptRef, ...]:
    """A group of this known concept alone."""
    return (ConceptRef("known", concept_id),)


def rows_of(lm: LanguageModel, concepts: Sequence[ConceptRef]) -> Tensor:
    """Embeddings (M, D) of concepts of either head, in float32."""
    heads = {"known": lm.concepts.known, "unknown": lm.concepts.unknown}
    config = lm.concepts.config
    counts = {"known": config.n_known, "unknown": config.n_unknown}
    for concept in concepts:
        if not 0 <= concept.id < counts[concept.kind]:
            raise ValueError(
                f"{concept} to steer, but {concept.kind} concepts are "
                f"0 … {counts[concept.kind] - 1}"
            )
    rows = [heads[concept.kind].rows(torch.tensor(concept.id)) for concept in concepts]
    return torch.stack(rows).detach().float()


def direction(lm: LanguageModel, concepts: Sequence[ConceptRef]) -> Tensor:
    """Unit direction (D) of a concept, or of several as one."""
    if not concepts:
        raise ValueError("a direction of no concept; name at least one")
    return functional.normalize(rows_of(lm, concepts).sum(0), dim=0)


def toward(lm: LanguageModel, direction_D: Tensor) -> Tensor:
    """Logits (V) that a direction adds to the tokens a text is made of; −inf for those it isn't."""
    special = lm.config
    never = torch.tensor([special.bos_id, special.pad_id, special.mask_id])
    return lm.unembed(direction_D).detach().float().index_fill(0, never, -math.inf)


def steerable(lm: LanguageModel, concepts: Sequence[ConceptRef]) -> bool:
    """Whether a group's direction raises any token: else there is nothing to calibrate."""
    return bool(toward(lm, direction(lm, concepts)).max() > 0)


def calibration(lm: LanguageModel, concepts: Sequence[ConceptRef], strength: float) -> float:
    """γ: how far along a group's direction its top token's logit moves by `strength`."""
    peak = float(toward(lm, direction(lm, concepts)).max())
    if not peak > 0:
        raise ValueError(
            f"{' + '.join(map(str, concepts))} raises no token's logit (its peak is {peak:.3g}), "
            f"so no strength can be calibrated; it was never learned, choose another"
        )
    return strength / peak


def suppression_mask(lm: LanguageModel, concepts: Sequence[ConceptRef], strength: float) -> Tensor:
    """What is taken from each logit (V): `strength` from a concept's top token, less from others.

    A token that speaks for several concepts is lowered by the one it speaks for most.
    """
    mask_V = torch.zeros(len(lm.head_VD))
    for concept in concepts:
        gain = calibration(lm, [concept], strength)
        raised_V = toward(lm, direction(lm, [concept])).clamp_min(0.0)
        mask_V = torch.maximum(mask_V, gain * raised_V)
    return mask_V
