"""What is measured of one text (paper appendix M).

    concept_score   probability of the concept in the text, by the detector: 0 … 1
    word_score      the same by its lifted words, which the detector does not know
    quality         e^(reference − loss), at most 1, times distinct-2: 0 … 1
    harmonic_mean   2cq / (c + q) of concept score and quality; 0 where both are

The loss is the unsteered network's, in nats per token, and the reference what it has on average for
its own, unsteered texts behind the same prompt: a text as fluent as those, without repeats, has
quality 1; one of whose tokens each is e times less likely has 0.37.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp

from components.steering.trials import Arm, Trial


@dataclass(frozen=True)
class Outcome:
    """One trial under one arm, measured."""

    trial: Trial
    arm: Arm
    trained: bool
    """Whether by the network whose training steered, or by the one before it."""

    concept_score: float
    other_score: float
    """The same detector's for another concept of the run, to which nothing was done: by chance."""

    word_score: float
    presence: float
    """Noisy OR of the concept's activation, as the unsteered network reads the text."""

    quality: float
    nll_nats: float
    distinct_2: float
    repetition: float
    judged_concept: float
    """0 … 1 from a language model's points; NaN where none was asked."""

    judged_quality: float
    text: str

    @property
    def key(self) -> tuple[int, int]:
        return self.trial.concept_id, self.trial.prompt_id

    @property
    def harmonic_mean(self) -> float:
        return harmonic(self.concept_score, self.quality)


def harmonic(one: float, other: float) -> float:
    """Harmonic mean of two numbers of 0 … 1; 0 where both are."""
    return 2 * one * other / (one + other) if one + other > 0 else 0.0


def quality(nll_nats: float, reference_nats: float, distinct: float) -> float:
    """How much of the unsteered texts' fluency is left, repeats counted against it."""
    return min(1.0, exp(reference_nats - nll_nats)) * distinct


def distinct_2(token_ids: Sequence[int]) -> float:
    """Share of neighbouring pairs that occur for the first time; 0 where there is no pair."""
    pairs = list(pairwise(token_ids))
    return len(set(pairs)) / len(pairs) if pairs else 0.0


def repetition(token_ids: Sequence[int]) -> float:
    """Share of tokens that the text has had before; 0 where there is none."""
    return 1 - len(set(token_ids)) / len(token_ids) if token_ids else 0.0
