"""Benchmarks of choices: which answer is likeliest, and how much of the probability is right.

accuracy            the likeliest answer is the right one
accuracy_per_byte   the same after each log-probability was divided by the answer's bytes
soft_score          probability of the right answer among the answers (method §7.2), for letters:
                    it moves where accuracy is still at chance
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from components.capability.benchmarks import Choice
from components.examinee import Examinee, Judged, Question


@dataclass(frozen=True)
class Chosen:
    """What a checkpoint made of one question."""

    id: str
    right: int
    nats: tuple[float, ...]
    standard_error_nats: tuple[float, ...]
    n_bytes: tuple[int, ...]
    n_dropped: int
    """Tokens of the question that the network had no room for."""

    @property
    def is_right(self) -> bool:
        return int(np.argmax(self.nats)) == self.right

    @property
    def is_right_per_byte(self) -> bool:
        return int(np.argmax(np.divide(self.nats, self.n_bytes))) == self.right

    @property
    def probability(self) -> float:
        """Of the right answer, among the answers."""
        return float(_softmax(np.array(self.nats))[self.right])

    @property
    def is_longest(self) -> bool:
        """Whether the right answer is the longest."""
        return int(np.argmax(self.n_bytes)) == self.right

    @property
    def chance(self) -> float:
        return 1 / len(self.nats)


def choose(examinee: Examinee, asked: Sequence[Choice]) -> list[Chosen]:
    """Judge every answer of every question."""
    questions = [Question(one.context, answer) for one in asked for answer in one.answers]
    judged = iter(examinee.likelihoods(questions))
    return [_chosen(one, [next(judged) for _ in one.answers]) for one in asked]


def _chosen(asked: Choice, judged: Sequence[Judged]) -> Chosen:
    return Chosen(
        id=asked.id,
        right=asked.right,
        nats=tuple(one.nats for one in judged),
        standard_error_nats=tuple(one.standard_error_nats for one in judged),
        n_bytes=tuple(len(answer.encode()) for answer in asked.answers),
        n_dropped=max(one.n_dropped for one in judged),
    )


def _softmax(nats_N: NDArray[np.float64]) -> NDArray[np.float64]:
    weight_N = np.exp(nats_N - nats_N.max())
    return np.asarray(weight_N / weight_N.sum())
