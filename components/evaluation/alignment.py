"""Known-concept alignment without a language model to judge it (paper §7.1, appendix E).

The paper asks a 24B judge whether a concept's top tokens reflect its card. Offline, the question
is put to a sentence encoder: is the card closer to its own tokens than to other concepts' tokens?
A cosine alone means nothing here, so it is never reported without the shuffled pairings.

Shape suffixes used in this file:
    K judged concept
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""Unit vectors of texts."""


@dataclass(frozen=True)
class Card:
    """What a concept is said to be, and the tokens it raises most."""

    concept_id: int
    name: str
    description: str
    tokens: str


@dataclass(frozen=True)
class Alignment:
    """By concept: cosine of its card and tokens, the same over all wrong pairings, and how many
    wrong cards lie farther from its tokens than its own (ties half)."""

    cosine_K: Floats
    shuffled_K: Floats
    auroc_K: Floats


def judge(cards: Sequence[Card], embed: Embed) -> Alignment:
    """Compare every card with every concept's tokens."""
    n_cards = len(cards)
    if n_cards < 2:
        raise ValueError(f"{n_cards} concept to judge; shuffled pairings need two or more")
    meant = embed([f"{card.name}: {card.description}" for card in cards]).astype(np.float64)
    said = embed([card.tokens for card in cards]).astype(np.float64)
    cosine_KK = said @ meant.T
    own_K = np.diag(cosine_KK)
    farther_K = (cosine_KK < own_K[:, None]).sum(axis=1)
    equal_K = (cosine_KK == own_K[:, None]).sum(axis=1) - 1
    return Alignment(
        cosine_K=own_K,
        shuffled_K=(cosine_KK.sum(axis=1) - own_K) / (n_cards - 1),
        auroc_K=(farther_K + equal_K / 2) / (n_cards - 1),
    )
