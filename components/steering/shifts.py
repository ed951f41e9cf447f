"""What injection was calibrated to do to logits, and what it did (the condition of Agreement).

Calibration reads a direction off the head: τ at the concept's top token, less at others. In between
lie the layers behind the injection and the final norm. For each concept the same masked position
is read with and without the injection, before any token was written.

    predicted_V = γ e·W_v     observed_V = ℓ_v(steered) − ℓ_v(unsteered)

Shape suffixes used in this file:
    B trial   T position   V vocabulary
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor

from components.steering.config import SteerConfig
from components.steering.trials import Arm, Trial, change
from model.directions import calibration, direction, known, toward
from model.language_model import LanguageModel
from model.steering import GIVEN, MASKED, steering


@dataclass(frozen=True)
class Shift:
    """One concept at one strength."""

    concept_id: int
    strength: float
    rank_correlation: float
    """Spearman, over the tokens that text is made of."""

    slope: float
    """Of observed on predicted; 1 would be as calibrated."""

    top_logits: float
    """Observed shift of the token that τ was promised to."""


@torch.no_grad()
def shifts(
    lm: LanguageModel, wanted: Sequence[Trial], strength: float, config: SteerConfig
) -> list[Shift]:
    """One a concept, at its first neutral prompt."""
    mine = [trial for trial in wanted if trial.is_first and not trial.about]
    arm = Arm("injection", strength)
    ids_BT, where_BT, at = _asked(lm, mine)
    pushes = steering(lm, [[change(lm, trial.concept_id, arm, config)] for trial in mine])
    rows_B, nothing_B = torch.arange(len(mine)), torch.zeros(len(mine), dtype=torch.int64)
    steered = lm.hidden(ids_BT, injection=pushes.injection(rows_B, where_BT, nothing_B))
    observed_BV = (lm.logits(steered[:, at]) - lm.logits(lm.hidden(ids_BT)[:, at])).float()
    return [
        _shift(lm, trial.concept_id, strength, observed_V)
        for trial, observed_V in zip(mine, observed_BV, strict=True)
    ]


def _asked(lm: LanguageModel, trials: Sequence[Trial]) -> tuple[Tensor, Tensor, int]:
    """Prompts with masks up to the end of a block, what stands where, and the state to read."""
    prompt_BT = torch.tensor([trial.prompt.ids for trial in trials])
    n_prompt = prompt_BT.shape[1]
    if lm.config.backbone.attention == "causal":  # the last prompt token's state is read
        where_BT = torch.full_like(prompt_BT, GIVEN)
        where_BT[:, -1] = MASKED
        return prompt_BT, where_BT, n_prompt - 1
    block = lm.config.backbone.block
    n_open = block - n_prompt % block
    ids_BT = torch.nn.functional.pad(prompt_BT, (0, n_open), value=lm.config.mask_id)
    where_BT = torch.full_like(ids_BT, GIVEN)
    where_BT[:, n_prompt:] = MASKED
    return ids_BT, where_BT, n_prompt


def _shift(lm: LanguageModel, concept_id: int, strength: float, observed_V: Tensor) -> Shift:
    concept = known(concept_id)
    gain = calibration(lm, concept, strength)
    predicted_V = gain * toward(lm, direction(lm, concept))
    text_V = predicted_V.isfinite()
    predicted, observed = predicted_V[text_V].double().numpy(), observed_V[text_V].double().numpy()
    ranks = np.corrcoef(rankdata(predicted), rankdata(observed))[0, 1]
    centred = predicted - predicted.mean()
    return Shift(
        concept_id=concept_id,
        strength=strength,
        rank_correlation=float(ranks),
        slope=float(centred @ observed / (centred @ centred)),
        top_logits=float(observed[predicted.argmax()]),
    )
