"""Effect and cost of steering: means over trials with intervals over concepts (paper appendix M).

A concept's trials are drawn together. Changes are against the unsteered text of the same trial.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from components.steering.config import SteerConfig
from components.steering.trials import Arm, Trial, arms
from model import intervals

_KINDS: dict[str, tuple[bool, ...]] = {
    "all": (False, True), "neutral": (False,), "about": (True,),
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """One trial under one arm, measured."""

    trial: Trial
    arm: Arm
    concept_score: float
    presence: float
    """Noisy OR of the concept's activation, as the unsteered network reads the text."""

    quality: float
    nll_nats: float
    text: str

    @property
    def key(self) -> tuple[int, int]:
        return self.trial.judge.concept.concept_id, self.trial.prompt_id


Measure = Callable[[Outcome], float]

MEASURES: dict[str, Measure] = {
    "concept_score": lambda outcome: outcome.concept_score,
    "presence": lambda outcome: outcome.presence,
    "quality": lambda outcome: outcome.quality,
    "nll_nats": lambda outcome: outcome.nll_nats,
}


def summary(outcomes: Sequence[Outcome], n_equal: int, config: SteerConfig) -> dict[str, object]:
    """One entry an arm, strength and kind of prompt; then concepts and prompts."""
    control = {outcome.key: outcome for outcome in outcomes if outcome.arm.name == "none"}
    concepts = {o.trial.judge.concept.concept_id: o.trial.judge for o in outcomes}
    strongest = Arm("injection", max(config.strengths))
    return {
        "n_concepts": len(concepts),
        "n_prompts": config.n_neutral + config.n_about,
        "n_new_tokens": config.sampling.n_new,
        "strength_unit": "shift of the concept's top token, in logits",
        "n_strength_zero_equal_to_unsteered": n_equal,
        "silent_concepts": _silent(outcomes, control, strongest),
        "arms": [
            _entry(outcomes, control, arm, kind, config) for arm in arms(config) for kind in _KINDS
        ],
        "concepts": [
            {
                "concept_id": concept_id,
                "name": judge.concept.name,
                "description": judge.concept.description,
                "prevalence": judge.concept.prevalence,
                "n_lifted_words": len(judge.log_odds),
            }
            for concept_id, judge in concepts.items()
        ],
        "prompts": [
            {
                "concept_id": o.key[0],
                "prompt_id": o.key[1],
                "about": o.trial.about,
                "domain": o.trial.prompt.domain,
                "split": o.trial.prompt.split,
                "doc_id": o.trial.prompt.doc_id,
            }
            for o in control.values()
        ],
    }


def _entry(
    outcomes: Sequence[Outcome],
    control: dict[tuple[int, int], Outcome],
    arm: Arm,
    kind: str,
    config: SteerConfig,
) -> dict[str, object]:
    mine = [o for o in outcomes if o.arm == arm and o.trial.about in _KINDS[kind]]
    entry: dict[str, object] = {
        "arm": arm.name,
        "strength": arm.strength,
        "prompts": kind,
        "n": len(mine),
    }
    for name, measure in MEASURES.items():
        values = [measure(outcome) for outcome in mine]
        changes = [measure(outcome) - measure(control[outcome.key]) for outcome in mine]
        entry[name] = _mean(mine, values, config)
        entry[f"{name}_change"] = _mean(mine, changes, config)
    return entry


def _mean(
    outcomes: Sequence[Outcome], values: Sequence[float], config: SteerConfig
) -> dict[str, object]:
    concepts, group_N = np.unique([outcome.key[0] for outcome in outcomes], return_inverse=True)
    sum_G = intervals.by_group(np.array(values, dtype=np.float64), group_N, len(concepts))
    count_G = intervals.by_group(np.ones(len(values)), group_N, len(concepts))
    found = intervals.ratio_interval(sum_G, count_G, draws=config.bootstrap_draws, seed=config.seed)
    return asdict(found)


def _silent(
    outcomes: Sequence[Outcome], control: dict[tuple[int, int], Outcome], strongest: Arm
) -> list[int]:
    """Concepts that the strongest injection raises in no trial."""
    raised = {outcome.key[0]: False for outcome in outcomes if outcome.arm == strongest}
    for outcome in outcomes:
        if outcome.arm == strongest:
            raised[outcome.key[0]] |= outcome.concept_score > control[outcome.key].concept_score
    return [concept_id for concept_id, any_raised in raised.items() if not any_raised]
