"""Known-concept alignment without a language model to judge it (paper §7.1, appendix E).

The paper asks a 24B judge whether a concept's top tokens reflect its card. Offline, the question
is put to a sentence encoder: is the card closer to its own tokens than to other concepts' tokens?
A cosine alone means nothing here, so it is never reported without the shuffled pairings.

Shape suffixes used in this file:
    K judged concept
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from model.language_model import LanguageModel
from model.metrics import top_tokens
from model.tokenizer import Tokenizer

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


def cards_of(lm: LanguageModel, checkpoint: Path, n_concepts: int, *, n_tokens: int) -> list[Card]:
    """Names and descriptions of a checkpoint's library, evenly spread over it, beside the tokens
    that `lm` lets each concept raise most."""
    library = json.loads((checkpoint / "concepts.json").read_text())["concepts"]
    n_judged = min(n_concepts, len(library))
    chosen = np.linspace(0, len(library) - 1, n_judged).round().astype(int).tolist()
    tokenizer = Tokenizer(checkpoint / "tokenizer.json")
    ids = [int(library[place]["concept_id"]) for place in chosen]
    found_KJ = top_tokens(lm, ids, n_tokens, list(tokenizer.special_names))
    return [
        Card(
            concept_id=concept,
            name=str(library[place]["name"]),
            description=str(library[place]["description"]),
            tokens=_readable(tokenizer.pieces(row_J.tolist())),
        )
        for place, concept, row_J in zip(chosen, ids, found_KJ, strict=True)
    ]


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


def _readable(pieces: list[str]) -> str:
    """Pieces with a letter or digit; halves of a character and punctuation say nothing."""
    words = [piece.strip() for piece in pieces]
    return " ".join(word for word in words if any(map(str.isalnum, word)) and "\ufffd" not in word)
