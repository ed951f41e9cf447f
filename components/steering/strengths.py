"""Which strength suits a concept: the one whose texts have the greatest harmonic mean.

Amplified texts are judged by concept score and quality, suppressed ones by what is left of the
concept, 1 − concept score, and quality. A concept has evidence where some strength did better than
leaving its texts alone; the others get the common strength, the best over all concepts tried.

The same texts choose a strength and say how good it is, so a chosen mean is a little too high; the
common strength, chosen once for all concepts, is hardly so.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from components.steering.config import SteerConfig
from components.steering.measures import Outcome, harmonic
from components.steering_calibration import Strength, Tried
from model import intervals

_ARMS: dict[Tried, str] = {"amplify": "injection", "suppress": "injection_mask"}
Means = dict[int, list[float]]
"""Harmonic means of texts, by concept."""


def merit(outcome: Outcome, tried: Tried) -> float:
    """Harmonic mean of quality and of how far a text is what was wanted."""
    wanted = outcome.concept_score if tried == "amplify" else 1 - outcome.concept_score
    return harmonic(wanted, outcome.quality)


def common_strength(outcomes: Sequence[Outcome], tried: Tried, config: SteerConfig) -> Strength:
    """The strength with the greatest mean over all concepts, its interval over concepts."""
    by_strength = _by_strength(outcomes, tried)
    best = max(
        _strengths(tried, config), key=lambda strength: (_mean(by_strength[strength]), -strength)
    )
    return _strength(best, "common", list(by_strength[best].values()), config)


def own_strengths(
    outcomes: Sequence[Outcome], tried: Tried, common: Strength, config: SteerConfig
) -> dict[int, Strength]:
    """Of every concept that was tried its own strength, or the common one named as such."""
    by_strength = _by_strength(outcomes, tried)
    found = {}
    for concept_id, unsteered in by_strength[0.0].items():
        best = max(
            _strengths(tried, config),
            key=lambda s: (float(np.mean(by_strength[s][concept_id])), -s),
        )
        mine = by_strength[best][concept_id]
        if float(np.mean(mine)) > float(np.mean(unsteered)):
            found[concept_id] = _strength(best, "own", [[value] for value in mine], config)
        else:
            found[concept_id] = common
    return found


def _strengths(tried: Tried, config: SteerConfig) -> list[float]:
    return config.rising if tried == "amplify" else config.lowering


def _by_strength(outcomes: Sequence[Outcome], tried: Tried) -> Mapping[float, Means]:
    """Strength 0 is the unsteered text of the same prompts."""
    found: defaultdict[float, Means] = defaultdict(lambda: defaultdict(list))
    about = tried == "suppress"
    for outcome in outcomes:
        if outcome.trained and outcome.trial.about == about:
            arm = outcome.arm
            is_ours = arm.name == _ARMS[tried] and arm.strength != 0.0
            if arm.name == "none" or is_ours:
                found[abs(arm.strength)][outcome.trial.concept_id].append(merit(outcome, tried))
    return found


def _mean(means: Means) -> float:
    return float(np.mean([value for values in means.values() for value in values]))


def _strength(
    logits: float, source: Literal["own", "common"], groups: Sequence[Sequence[float]],
    config: SteerConfig,
) -> Strength:  # fmt: skip
    sum_G = np.array([sum(group) for group in groups])
    count_G = np.array([len(group) for group in groups], dtype=np.float64)
    found = intervals.ratio_interval(sum_G, count_G, draws=config.bootstrap_draws, seed=config.seed)
    return Strength(
        logits=logits, source=source, harmonic_mean=found.value, low=found.low, high=found.high,
        n=int(count_G.sum()),
    )  # fmt: skip
