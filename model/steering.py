"""Steering and interventions: change what a concept does, and nothing else (paper §6.2).

    injection    h ← h + γ e after the layers and at the positions of the change     eq. 18
    suppression  γ < 0, and the mask of `model.directions` is taken from the logits      eq. 20-21

γ comes from a common strength τ, a shift in logits of the concept's own top token. Plain negative
injection promotes what is anti-aligned with the concept; the mask lowers its tokens and raises
none. Every member of a group is masked by its own direction; a token of several is lowered once.

What a position gets is settled when it is committed, by how many tokens its row had written then.
A finished block therefore enters the cache with exactly the additions that a pass over the whole
text would give it, whatever schedule and positions a change asks for.

`override` sets activations at the bottleneck: the parts that are not set stay frozen, so that the
change of every logit is exactly the predicted one (the condition of Agreement).

Shape suffixes used in this file:
    B row   A rows asked about   N rows of logits, or commits in order   T position   D width
    V vocabulary
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from model.bottleneck import Decomposition
from model.directions import ConceptRef, calibration, direction, suppression_mask
from model.language_model import LanguageModel
from model.topk import TopConcepts
from model.transformer import Injection

Action = Literal["amplify", "suppress", "replace"]
Positions = Literal["masked", "generated", "all"]

STRONGEST = 1_000.0
"""Logits. A tenth of it saturates every distribution over tokens."""

GIVEN, MASKED = -1, 1 << 62
"""Of a position: it was in the prompt; it is not written yet. Else the tokens its row had written
when it was."""


@dataclass(frozen=True)
class Change:
    """One wish for one row: what to do with a concept, or with several as a group."""

    concepts: tuple[ConceptRef, ...]
    strength: float
    """τ, in logits, for every action. 0 leaves the row as it is."""

    action: Action = "amplify"
    instead: tuple[ConceptRef, ...] = ()
    """Replace: the group amplified while `concepts` are suppressed."""

    layers: int | tuple[int, ...] = 0
    """A layer and all after it, or exactly these."""

    positions: Positions = "masked"
    """Where: still masked; those and what was generated; the prompt as well. The AR families read
    tokens off the position before, so that the first two are the same for them."""

    first_tokens: int | None = None
    """Only while the row has written fewer tokens than this. None: throughout."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.strength) and 0.0 <= self.strength <= STRONGEST):
            raise ValueError(
                f"a steering strength of {self.strength}: it is a shift in logits from 0 to "
                f"{STRONGEST:g}; what lowers a concept is the action suppress"
            )
        if not self.concepts or (self.action == "replace") != bool(self.instead):
            raise ValueError(
                f"{self.action} of {len(self.concepts)} concepts with {len(self.instead)} to put "
                f"instead: name at least one concept, and others instead for replace alone"
            )
        if self.first_tokens is not None and self.first_tokens < 1:
            raise ValueError(f"steering of the first {self.first_tokens} tokens; give at least 1")


@dataclass(frozen=True)
class _Setting:
    """What all rows add at the same layers, positions and times; zero rows add nothing."""

    layers: tuple[int, ...]
    positions: Positions
    first_tokens: int | None
    addition_BD: Tensor
    suppression_BV: Tensor | None
    """Never negative: suppression raises no logit. None: no row suppresses here."""

    def on_A(self, written_A: Tensor) -> Tensor:
        """Whether the schedule is on for rows that have written so many tokens."""
        if self.first_tokens is None:
            return torch.ones_like(written_A, dtype=torch.bool)
        return written_A < self.first_tokens

    def steered_AT(self, where_AT: Tensor, written_A: Tensor) -> Tensor:
        """The positions that get the addition."""
        masked_AT = where_AT == MASKED
        then_AT = torch.where(masked_AT, written_A[:, None], where_AT)
        least = {"masked": MASKED, "generated": 0, "all": GIVEN}[self.positions]
        return (where_AT >= least) & self.on_A(then_AT)


@dataclass(frozen=True)
class Steering:
    """What generation adds to the states of each row and takes from its logits."""

    n_rows: int
    settings: tuple[_Setting, ...]

    def injection(self, rows_A: Tensor, where_AT: Tensor, written_A: Tensor) -> Injection | None:
        """What is added to these rows' states; None where no row of any is steered.

        `where` says of every position GIVEN, MASKED, or how many tokens its row had written when
        it was committed; `written`, how many the row has written by now. For the AR families it
        speaks of the token that is read off a position, not of the one that stands there.
        """
        by_layer: dict[int, Tensor] = {}
        for setting in self.settings:
            steered_AT1 = setting.steered_AT(where_AT, written_A)[..., None]
            addition_ATD = steered_AT1 * setting.addition_BD[rows_A][:, None]
            for layer in setting.layers:
                before = by_layer.get(layer)
                by_layer[layer] = addition_ATD if before is None else before + addition_ATD
        return Injection(by_layer) if by_layer else None

    def suppression(self, rows_N: Tensor, written_N: Tensor) -> Tensor | None:
        """What is taken from logits (N, V), never negative; None where no row suppresses."""
        total_NV = None
        for setting in self.settings:
            if setting.suppression_BV is not None:
                lowered_NV = setting.suppression_BV[rows_N] * setting.on_A(written_N)[:, None]
                total_NV = lowered_NV if total_NV is None else total_NV + lowered_NV
        return total_NV

    def of(self, row: int) -> "Steering":
        """One row's steering alone: it is row 0 there."""
        if not 0 <= row < self.n_rows:
            raise ValueError(f"row {row} of steering for rows 0 … {self.n_rows - 1}")
        one = slice(row, row + 1)
        return Steering(
            1,
            tuple(
                replace(
                    at,
                    addition_BD=at.addition_BD[one],
                    suppression_BV=None if at.suppression_BV is None else at.suppression_BV[one],
                )
                for at in self.settings
            ),
        )


def turns(masked_T: Tensor, readout_N: Tensor, group_N: Tensor, group: int) -> Tensor:
    """`where` (T) of the snapshot a group of commits saw, from the trace's own record.

    Commits of one group had seen the same text, and so were written at the same count.
    """
    where_T = torch.full(masked_T.shape, GIVEN).masked_fill(masked_T, MASKED)
    earlier_N = group_N < group
    where_T[readout_N[earlier_N]] = torch.searchsorted(group_N, group_N)[earlier_N]
    where_T[readout_N[group_N == group]] = MASKED
    return where_T


@torch.no_grad()
def steering(lm: LanguageModel, rows: Sequence[Sequence[Change]]) -> Steering:
    """The changes of each row of a batch, calibrated. Strength 0 leaves its row as it was."""
    width = lm.config.backbone.width
    pushes = [[push for change in row for push in _pushes(lm, change)] for row in rows]
    settings = []
    for key in dict.fromkeys(push.key for row in pushes for push in row):
        mine = [[push for push in row if push.key == key] for row in pushes]
        masks = [[push.mask_V for push in row if push.mask_V is not None] for row in mine]
        zero_V = torch.zeros(len(lm.head_VD)) if any(masks) else None
        layers, positions, first_tokens = key
        settings.append(
            _Setting(
                layers, positions, first_tokens,
                torch.stack([sum((p.addition_D for p in row), torch.zeros(width)) for row in mine]),
                None if zero_V is None else torch.stack([sum(row, zero_V) for row in masks]),
            )
        )  # fmt: skip
    return Steering(len(rows), tuple(settings))


@dataclass(frozen=True)
class _Push:
    """One direction added, and what it takes from the logits."""

    key: tuple[tuple[int, ...], Positions, int | None]
    addition_D: Tensor
    mask_V: Tensor | None


def _pushes(lm: LanguageModel, change: Change) -> list[_Push]:
    positions = change.positions
    if positions == "masked" and lm.config.backbone.attention == "causal":
        positions = "generated"
    key = (_layers(lm, change.layers), positions, change.first_tokens)
    raised = {"amplify": change.concepts, "suppress": (), "replace": change.instead}[change.action]
    lowered = () if change.action == "amplify" else change.concepts
    found = []
    if raised:
        gain = calibration(lm, raised, change.strength)
        found.append(_Push(key, gain * direction(lm, raised), None))
    if lowered:
        gain = calibration(lm, lowered, change.strength)
        mask_V = suppression_mask(lm, lowered, change.strength)
        found.append(_Push(key, -gain * direction(lm, lowered), mask_V))
    return found


def _layers(lm: LanguageModel, layers: int | tuple[int, ...]) -> tuple[int, ...]:
    n_layers = lm.config.backbone.n_layers
    asked = tuple(range(layers, n_layers)) if isinstance(layers, int) else layers
    if not asked or min(asked) < 0 or max(asked) >= n_layers or len(set(asked)) < len(asked):
        raise ValueError(
            f"steering at layers {layers}, but layers are 0 … {n_layers - 1}; give the first one, "
            f"or several of them once each"
        )
    return asked


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
