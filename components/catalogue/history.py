"""How a library came about, as `library.json` tells it: from tags to concepts, step by step.

origin     encoder, counts, coherence by k, and every step
reasons    steps of one kind together, with how many clusters or concepts they cost
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, NonNegativeInt

from components.library import Library

DROP, MERGE = "drop", "merge"
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Step(_Part):
    """One thing that was done to clusters or concepts, by their names or their tags.

    A drop of nothing by name is one of tags, before there were clusters.
    """

    action: str
    names: tuple[str, ...]
    reason: str

    @property
    def n_lost(self) -> int:
        """Clusters or concepts that there were before and not after."""
        if self.action == DROP:
            return min(1, len(self.names))
        return len(self.names) - 1 if self.action == MERGE else 0

    def touches(self, names: frozenset[str]) -> bool:
        """Whether it speaks of any of these names, whatever their case."""
        return any(name.casefold() in names for name in self.names)


class CoherenceAt(_Part):
    """Mean cosine of tags to their centroids when there were k clusters."""

    k: int
    coherence: float


class Origin(_Part):
    """What a library was made from and how."""

    encoder: str
    encoder_digest: str
    n_concepts: NonNegativeInt
    n_tags: NonNegativeInt
    n_tagged_chunks: NonNegativeInt
    n_clusters: NonNegativeInt
    coherence_curve: tuple[CoherenceAt, ...]
    history: tuple[Step, ...]


@dataclass(frozen=True)
class Reason:
    """Steps that were taken for one reason. Numbers that differ between them are a range."""

    action: str
    why: str
    n_steps: int
    n_lost: int


def origin(library: Library) -> Origin:
    """The library's own account. Raises ValueError where a part of it is missing."""
    return Origin.model_validate(dict(library.facts))


def reasons(history: Sequence[Step]) -> list[Reason]:
    """In the order in which they first appear."""
    groups: dict[tuple[str, str], list[Step]] = {}
    for step in history:
        pattern = _NUMBER.sub("#", _stem(step.reason))
        groups.setdefault((step.action, pattern), []).append(step)
    return [
        Reason(action, _worded(pattern, steps), len(steps), sum(step.n_lost for step in steps))
        for (action, pattern), steps in groups.items()
    ]


def _stem(reason: str) -> str:
    """A reason without what it says of the one case, which follows a semicolon."""
    return reason.split(";")[0].strip()


def _worded(pattern: str, steps: Sequence[Step]) -> str:
    numbers = zip(*(_NUMBER.findall(_stem(step.reason)) for step in steps), strict=True)
    for found in numbers:
        ordered = sorted(set(found), key=lambda text: float(text.replace(",", "")))
        span = ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"
        pattern = pattern.replace("#", span, 1)
    return pattern
