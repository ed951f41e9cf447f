"""A library in the making: groups of tags with their cards, and what became of the others.

Shape suffixes: N tags   K groups   D width of a vector
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from components.atlas.clusters import NONE, Groups, measure
from components.atlas.naming import Card, members
from components.atlas.tagged import Integers, Tagged
from components.embedding import Embedder, Floats


@dataclass(frozen=True)
class History:
    """What was dropped, merged and moved on the way, and why."""

    steps: list[dict[str, object]] = field(default_factory=list)

    def tell(self, action: str, names: Sequence[str], reason: str) -> None:
        """Remember one step."""
        self.steps.append({"action": action, "names": list(names), "reason": reason})


class CardVectors:
    """Vectors of cards; a card that stays as it was is not encoded again."""

    def __init__(self, encoder: Embedder) -> None:
        self.encoder = encoder
        self._known: dict[str, Floats] = {}

    def of(self, cards: Sequence[Card]) -> Floats:
        """Unit vectors (K, D) in the order of the cards."""
        texts = [card.text for card in cards]
        new = sorted(set(texts) - self._known.keys())
        if new:
            self._known |= dict(zip(new, self.encoder.embed(new), strict=True))
        self._known = {text: self._known[text] for text in texts}
        return np.stack([self._known[text] for text in texts])


@dataclass(frozen=True)
class Draft:
    """Groups and their cards, in one order."""

    tagged: Tagged
    groups: Groups
    cards: tuple[Card, ...]

    @property
    def n(self) -> int:
        return self.groups.n

    def members(self, group: int) -> list[str]:
        """Tags of a group, the commonest first."""
        return members(self.tagged, self.groups, group)

    def regrouped(self, owner_K: Integers) -> "Draft":
        """Groups joined to the group that owns them, each its own if it stays, NONE if dropped."""
        held = sorted(set(owner_K.tolist()) - {NONE})
        group_N = self.groups.group_N
        owner_N = np.where(group_N == NONE, NONE, owner_K[group_N])
        cards = tuple(self.cards[owner] for owner in held)
        return Draft(self.tagged, measure(self.tagged, owner_N), cards)

    def ranked(self) -> "Draft":
        """The same groups, the one on most chunks first, then by name."""
        order = sorted(
            range(self.n), key=lambda at: (-int(self.groups.n_chunks_K[at]), self.cards[at].name)
        )
        rank_K = np.empty(self.n, dtype=np.int64)
        rank_K[order] = np.arange(self.n)
        group_N = self.groups.group_N
        ranked_N = np.where(group_N == NONE, NONE, rank_K[group_N])
        return Draft(
            self.tagged, measure(self.tagged, ranked_N), tuple(self.cards[at] for at in order)
        )

    def kept(self, keep_K: NDArray[np.bool_]) -> "Draft":
        """Without some of the groups."""
        return self.regrouped(np.where(keep_K, np.arange(self.n), NONE))
