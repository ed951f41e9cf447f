"""The concepts of a checkpoint by name: what a person types, and what they may have meant.

    known     0 … K − 1, named by the library the network was trained with
    unknown   0 … U − 1, "Discovered: …" where a name was found that holds, else "unknown 17"

A name counts whatever its case. Several joined by " + " are one group.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from heapq import heappush, heapreplace

from components.explaining.schema import ConceptFound, Estimate, Kind
from components.library import KnownConcept
from components.unknown_names import DISCOVERED, UNNAMED, UnknownName

GROUP = " + "
_N_OFFERED = 5
_LEAST_ALIKE = 0.5
_PART = 0.8
"""Score of a name that holds what was asked somewhere inside a word."""

At = tuple[Kind, int]
_UNKNOWN_ID = re.compile(r"unknown[ :#]*(\d+)")


def is_named(kind: Kind, name: str) -> bool:
    """Whether a name says more than a number does."""
    return kind == "known" or name.startswith(DISCOVERED)


class ConceptError(ValueError):
    """A concept that was asked for cannot be told. `candidates` are names that may be meant."""

    def __init__(self, message: str, asked: str, candidates: Sequence[str]) -> None:
        super().__init__(message)
        self.asked, self.candidates = asked, tuple(candidates)


class UnknownConceptError(ConceptError):
    """No concept is called so."""


class AmbiguousConceptError(ConceptError):
    """Several concepts are called so."""


@dataclass(frozen=True)
class Vocabulary:
    """Every concept of a checkpoint."""

    known: tuple[KnownConcept, ...]
    n_unknown: int
    unknown: Mapping[int, UnknownName]
    """What was found of unknown concepts, where names were sought for them."""

    def name(self, kind: Kind, concept_id: int) -> str:
        """What a reader sees."""
        if kind == "known":
            return self.known[concept_id].name
        found = self.unknown.get(concept_id)
        if found is None or found.name == UNNAMED:
            return f"unknown {concept_id}"
        return f"{DISCOVERED}{found.name}"

    def concept(self, kind: Kind, concept_id: int, score: float = 1.0) -> ConceptFound:
        """One concept with what is on record."""
        name = self.name(kind, concept_id)
        if kind == "unknown":
            return self._unknown(concept_id, name, score)
        known = self.known[concept_id]
        return ConceptFound(
            kind=kind, concept_id=concept_id, name=name, description=known.description,
            prevalence_share=known.prevalence, score=score,
        )  # fmt: skip

    def _unknown(self, concept_id: int, name: str, score: float) -> ConceptFound:
        found = self.unknown.get(concept_id)
        if found is None:
            return ConceptFound(kind="unknown", concept_id=concept_id, name=name, score=score)
        auc = Estimate(value=found.auc, low=found.auc_low, high=found.auc_high, n=found.n_chunks)
        return ConceptFound(
            kind="unknown", concept_id=concept_id, name=name, description=found.description,
            score=score, name_auc=auc,
        )  # fmt: skip

    def find(self, query: str, limit: int) -> list[ConceptFound]:
        """Concepts whose names are like the query, best first; all, in order, for an empty one."""
        wanted = query.strip().casefold()
        if not wanted:
            return [self.concept(kind, number) for kind, number in self._all()[:limit]]
        return self._nearest(wanted, limit, _LEAST_ALIKE)

    def group(self, asked: str) -> tuple[ConceptFound, ...]:
        """The concept of this name or id, or of each name in `A + B`. Raises ConceptError."""
        if GROUP in asked and not self._called(asked):
            return tuple(self.one(part) for part in asked.split(GROUP))
        return (self.one(asked),)

    def one(self, asked: str) -> ConceptFound:
        """The concept of this name or id. Raises ConceptError with names that are near."""
        called = self._called(asked)
        if len(called) == 1:
            return self.concept(*called[0])
        if called:
            names = [f"{kind} {number}: {self.name(kind, number)}" for kind, number in called]
            raise AmbiguousConceptError(
                f"{asked!r} is the name of {len(called)} concepts: {'; '.join(names)}. Give the "
                f"id of one", asked, names,
            )  # fmt: skip
        near = [found.name for found in self._nearest(asked, _N_OFFERED, least=0.0)]
        meant = f"Did you mean {' or '.join(near)}?" if near else "It has none at all."
        raise UnknownConceptError(
            f"there is no concept {asked!r} among {len(self.known)} known and {self.n_unknown} "
            f"unknown ones. {meant}", asked, near,
        )  # fmt: skip

    def _called(self, asked: str) -> list[tuple[Kind, int]]:
        wanted = asked.strip().casefold()
        unknown = _UNKNOWN_ID.fullmatch(wanted)
        if unknown is not None and int(unknown[1]) < self.n_unknown:
            return [("unknown", int(unknown[1]))]
        exact = [at for at in self._by_name() if self.name(*at).casefold() == wanted]
        number = wanted.removeprefix("concept ").removeprefix("known ")
        if exact or not (number.isascii() and number.isdigit()):
            return exact
        return [("known", int(number))] if int(number) < len(self.known) else []

    def _nearest(self, asked: str, limit: int, least: float) -> list[ConceptFound]:
        """Names that hold what was asked; where they are too few, names that are spelled alike."""
        wanted = asked.strip().casefold()
        names = {at: self.name(*at).casefold() for at in self._by_name()}
        scores = {at: _holding(wanted, name) for at, name in names.items()}
        if sum(score > 0 for score in scores.values()) < limit:
            others = {at: name for at, name in names.items() if scores[at] == 0}
            scores.update(_spelled_alike(wanted, others, limit))
        best = sorted(scores, key=lambda at: -scores[at])[:limit]
        return [self.concept(*at, round(scores[at], 3)) for at in best if scores[at] >= least]

    def _by_name(self) -> list[tuple[Kind, int]]:
        known: list[tuple[Kind, int]] = [("known", number) for number in range(len(self.known))]
        return known + [("unknown", number) for number in sorted(self.named)]

    @cached_property
    def named(self) -> frozenset[int]:
        """Unknown concepts whose names hold."""
        return frozenset(at for at, found in self.unknown.items() if found.name != UNNAMED)

    def _all(self) -> list[tuple[Kind, int]]:
        return self._by_name() + [
            ("unknown", number) for number in range(self.n_unknown) if number not in self.named
        ]


def _holding(wanted: str, name: str) -> float:
    """1 for the same letters, less for a beginning, a beginning of a word, a part; else 0."""
    if name == wanted:
        return 1.0
    if name.startswith(wanted):
        return 0.95
    if any(word.startswith(wanted) for word in name.split()):
        return 0.9
    return _PART if wanted in name else 0.0


def _spelled_alike(wanted: str, names: Mapping[At, str], limit: int) -> dict[At, float]:
    """Scores below those of names that hold what was asked.

    Bounds of the similarity, which cost little, are compared with the best scores so far: a search
    of a hundred thousand names takes a fraction of a second.
    """
    matcher = SequenceMatcher(None)
    matcher.set_seq2(wanted)  # what is compared with many is looked at once
    kept: list[tuple[float, At]] = []
    for at, name in names.items():
        worst = kept[0][0] if len(kept) == limit else -1.0
        score = max(_ratio(matcher, part, worst) for part in (name, *name.split()))
        if score > worst:
            change = heapreplace if len(kept) == limit else heappush
            change(kept, (score, at))
    return {at: 0.99 * _PART * score for score, at in kept}


def _ratio(matcher: "SequenceMatcher[str]", text: str, worst: float) -> float:
    """Similarity of spelling in [0, 1], or any number at most `worst` that bounds it."""
    matcher.set_seq1(text)
    for bound in (matcher.real_quick_ratio, matcher.quick_ratio):
        most = bound()
        if most <= worst:
            return most
    return matcher.ratio()
