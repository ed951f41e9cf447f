"""Input tokens: what some tokens of a text owe to them, and what masking them really does.

Masking is the test of the attribution (paper §6.1.1): see `model.input_masking`.

Shape suffixes: N token of the text, in reading order   B target   T position
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from components.attribution.config import AttributeConfig
from model.input_attribution import attribute
from model.input_masking import Curves, Foretold, curves, effects, foretold
from model.language_model import LanguageModel
from model.trace import Trace


@dataclass(frozen=True)
class TracedInputs:
    """What one token owes to each position of the text; 0 where the network saw none."""

    commit: int
    position: int
    weight_T: Tensor
    missing: float
    gap: float
    """In logits: what the weights must add up to, and by how much they miss it."""

    evaluations: int
    reached: bool
    """Whether the weights add up within the tolerance."""

    replay_error: float
    """|logit of the replayed snapshot − recorded logit|."""


@dataclass(frozen=True)
class Masked:
    """Some of the tokens of a text, with inputs masked."""

    curves: Curves
    together: Foretold
    """By the attribution that is listed."""

    in_parts: Foretold
    """By the one that is made to foretell: inputs moved in parts."""


def trace_inputs(
    lm: LanguageModel, trace: Trace, commits_N: Tensor, config: AttributeConfig
) -> list[TracedInputs]:
    """Attribute some tokens, evenly spread over the order in which they were chosen."""
    chosen = spread(commits_N, config.input_targets)
    found = attribute(lm, trace, chosen, config.inputs)
    replay_B = (found.logit_B - trace.logit_N[chosen]).abs()
    traced = [
        TracedInputs(
            commit,
            int(trace.position_N[commit]),
            found.weight_BT[row],
            float(found.missing_B[row]),
            float(found.gap_B[row]),
            int(found.evaluations_B[row]),
            bool(found.reached_B[row]),
            float(replay_B[row]),
        )
        for row, commit in enumerate(chosen)
    ]
    return sorted(traced, key=lambda one: one.position)


def mask_inputs(
    lm: LanguageModel, trace: Trace, traced: Sequence[TracedInputs], prompt_id: int,
    config: AttributeConfig,
) -> Masked:  # fmt: skip
    """Mask inputs of a few of the traced tokens, and compare with what was said of them."""
    how, weight_of = config.masking, {one.commit: one.weight_T for one in traced}
    chosen = spread(torch.tensor(list(weight_of)), how.targets)
    weight_BT = torch.stack([weight_of[commit] for commit in chosen])
    in_parts_BT = attribute(lm, trace, chosen, how.in_parts).weight_BT
    effect_BT = effects(lm, trace, chosen)
    found = curves(
        lm, trace, chosen, weight_BT,
        counts=how.counts, n_orders=how.random_orders, seed=[config.seed, prompt_id],
    )  # fmt: skip
    return Masked(found, foretold(weight_BT, effect_BT), foretold(in_parts_BT, effect_BT))


def spread(commits_N: Tensor, most: int) -> list[int]:
    """At most so many of these commits, evenly over the order in which they were made."""
    n = min(most, len(commits_N))
    at_B = torch.linspace(0, len(commits_N) - 1, n).round().long()
    chosen: list[int] = commits_N.sort().values[at_B].tolist()
    return chosen
