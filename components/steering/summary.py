"""Effect and cost of steering: means over trials with intervals over concepts (paper appendix M).

A concept's trials are drawn together. Changes are against the unsteered text of the same trial by
the same network; amplification is also compared with asking for the concept in the prompt.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from components.steering.config import SteerConfig
from components.steering.measures import Outcome, harmonic
from components.steering.trials import Arm
from model import intervals

Measure = Callable[[Outcome], float]
Key = tuple[int, int]

MEASURES: dict[str, Measure] = {
    "concept_score": lambda outcome: outcome.concept_score,
    "other_score": lambda outcome: outcome.other_score,
    "word_score": lambda outcome: outcome.word_score,
    "presence": lambda outcome: outcome.presence,
    "quality": lambda outcome: outcome.quality,
    "harmonic_mean": lambda outcome: outcome.harmonic_mean,
    "nll_nats": lambda outcome: outcome.nll_nats,
    "distinct_2": lambda outcome: outcome.distinct_2,
    "repetition": lambda outcome: outcome.repetition,
    "judged_concept": lambda outcome: outcome.judged_concept,
    "judged_quality": lambda outcome: outcome.judged_quality,
    "judged_harmonic_mean": lambda o: harmonic(o.judged_concept, o.judged_quality),
}
_KINDS: dict[str, tuple[bool, ...]] = {
    "all": (False, True), "neutral": (False,), "about": (True,),
}  # fmt: skip
_HARMONIC = MEASURES["harmonic_mean"]


@dataclass(frozen=True)
class Compared:
    """Outcomes to be compared, with their controls at hand."""

    outcomes: Sequence[Outcome]
    config: SteerConfig

    def of(self, arm: Arm, kind: str = "all", *, trained: bool = True) -> list[Outcome]:
        """Texts of an arm on prompts of a kind."""
        return [
            o for o in self.outcomes
            if o.arm == arm and o.trained == trained and o.trial.about in _KINDS[kind]
        ]  # fmt: skip

    def entries(self) -> list[dict[str, object]]:
        """One an arm, network and kind of prompt that it met."""
        arms = dict.fromkeys((o.arm, o.trained) for o in self.outcomes)
        return [
            self._entry(arm, kind, trained=trained)
            for arm, trained in arms
            for kind in _KINDS
            if self.of(arm, kind, trained=trained)
        ]

    def _entry(self, arm: Arm, kind: str, *, trained: bool) -> dict[str, object]:
        mine = self.of(arm, kind, trained=trained)
        control = by_key(self.of(Arm("none"), trained=trained))
        entry: dict[str, object] = {
            "arm": arm.name, "strength": arm.strength, "prompts": kind,
            "steering_trained": trained, "n": len(mine),
        }  # fmt: skip
        for name, measure in MEASURES.items():
            if any(math.isnan(measure(outcome)) for outcome in mine):
                continue  # not judged by a language model, or not all of them
            changes = [measure(outcome) - measure(control[outcome.key]) for outcome in mine]
            entry[name] = self.mean(mine, [measure(outcome) for outcome in mine])
            entry[f"{name}_change"] = self.mean(mine, changes)
        return entry

    def over(self, arm: Arm, other: Arm, kind: str, measure: str) -> dict[str, object]:
        """How much more an arm has than another on the same trials, paired."""
        theirs = by_key(self.of(other, kind))
        mine = [outcome for outcome in self.of(arm, kind) if outcome.key in theirs]
        values = [MEASURES[measure](o) - MEASURES[measure](theirs[o.key]) for o in mine]
        return {
            "arm": arm.name, "strength": arm.strength, "over": other.name, "prompts": kind,
            "measure": measure, "n": len(mine), **self.mean(mine, values),
        }  # fmt: skip

    def trained_against_before(self, strength: float) -> dict[str, object]:
        """Harmonic means before and after steering training, and the paired change."""
        arm = Arm("injection", strength)
        after, before = self.of(arm), by_key(self.of(arm, trained=False))
        changes = [_HARMONIC(o) - _HARMONIC(before[o.key]) for o in after]
        earlier = list(before.values())
        return {
            "strength": strength, "n": len(after),
            "before": self.mean(earlier, [_HARMONIC(o) for o in earlier]),
            "after": self.mean(after, [_HARMONIC(o) for o in after]),
            "change": self.mean(after, changes),
            **{
                f"{name}_{when}": self.mean(texts, [MEASURES[name](o) for o in texts])
                for name in ("concept_score", "quality")
                for when, texts in (("before", earlier), ("after", after))
            },
        }  # fmt: skip

    def silent(self, arms: Sequence[Arm], measure: str = "concept_score") -> list[int]:
        """Concepts whose score none of these arms raises in any text."""
        control = by_key(self.of(Arm("none")))
        raised: dict[int, bool] = {}
        for arm in arms:
            for outcome in self.of(arm, "neutral"):
                gain = MEASURES[measure](outcome) - MEASURES[measure](control[outcome.key])
                raised[outcome.trial.concept_id] = raised.get(outcome.trial.concept_id) or gain > 0
        return [concept_id for concept_id, any_raised in raised.items() if not any_raised]

    def mean(self, outcomes: Sequence[Outcome], values: Sequence[float]) -> dict[str, object]:
        """Mean over texts, interval over concepts."""
        return over_groups([o.trial.concept_id for o in outcomes], values, self.config)


def over_groups(
    groups: Sequence[int], values: Sequence[float], config: SteerConfig
) -> dict[str, object]:
    """Mean of values, with the interval of drawing whole groups of them."""
    names, group_N = np.unique(np.array(groups), return_inverse=True)
    sum_G = intervals.by_group(np.array(values, dtype=np.float64), group_N, len(names))
    count_G = intervals.by_group(np.ones(len(values)), group_N, len(names))
    found = intervals.ratio_interval(sum_G, count_G, draws=config.bootstrap_draws, seed=config.seed)
    return asdict(found)


def by_key(outcomes: Sequence[Outcome]) -> dict[Key, Outcome]:
    """Texts by concept and prompt."""
    return {outcome.key: outcome for outcome in outcomes}


def summary(outcomes: Sequence[Outcome], n_equal: int, config: SteerConfig) -> dict[str, object]:
    """Arms; amplification against its rivals; silence; before and after; concepts and prompts."""
    compared = Compared(outcomes, config)
    amplified = [Arm("injection", strength) for strength in config.rising]
    suppressed = [Arm("injection_mask", -strength) for strength in config.lowering]
    rivals = (Arm("none"), Arm("prompting"))
    names = ("concept_score", "word_score", "harmonic_mean")
    return {
        "n_concepts": len({outcome.trial.concept_id for outcome in outcomes}),
        "n_prompts": config.n_neutral + config.n_about,
        "n_new_tokens": config.sampling.n_new,
        "strength_unit": "shift of the concept's top token, in logits",
        "n_strength_zero_equal_to_unsteered": n_equal,
        "silent": _silence(compared, amplified),
        "arms": compared.entries(),
        "comparisons": [
            *(
                compared.over(arm, rival, "neutral", name)
                for arm in amplified for rival in rivals for name in names
            ),
            *(compared.over(arm, rivals[0], "about", "concept_score") for arm in suppressed),
        ],
        "before_after": [compared.trained_against_before(s) for s in config.strengths_before],
        "concepts": _concepts(outcomes),
        "prompts": _prompts(compared.of(Arm("none"))),
    }  # fmt: skip


def _silence(compared: Compared, amplified: Sequence[Arm]) -> list[dict[str, object]]:
    """Of each strength, and of all together: concepts raised in no text, and how many would be
    found so by chance, were a text of the run scored for a concept that nothing was done to."""
    groups = {f"{arm.strength:g}": [arm] for arm in amplified}
    if len(amplified) > 1:
        groups["any"] = list(amplified)
    n_concepts = len({o.trial.concept_id for o in compared.outcomes})
    return [
        {
            "strength": name,
            "n_texts": sum(len(compared.of(arm, "neutral")) for arm in arms) // n_concepts,
            "concept_ids": compared.silent(arms),
            "share": len(compared.silent(arms)) / n_concepts,
            "share_by_chance": len(compared.silent(arms, "other_score")) / n_concepts,
        }
        for name, arms in groups.items()
    ]


def _concepts(outcomes: Sequence[Outcome]) -> list[dict[str, object]]:
    judges = {o.trial.concept_id: o.trial.judge for o in outcomes}
    return [
        {
            "concept_id": concept_id,
            "name": judge.concept.name,
            "description": judge.concept.description,
            "prevalence": judge.concept.prevalence,
            "n_lifted_words": len(judge.log_odds),
        }
        for concept_id, judge in judges.items()
    ]


def _prompts(unsteered: Sequence[Outcome]) -> list[dict[str, object]]:
    return [
        {
            "concept_id": o.trial.concept_id,
            "prompt_id": o.trial.prompt_id,
            "about": o.trial.about,
            "domain": o.trial.prompt.domain,
            "split": o.trial.prompt.split,
            "doc_id": o.trial.prompt.doc_id,
        }
        for o in unsteered
    ]
