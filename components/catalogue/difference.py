"""What became of the concepts of one library in another.

A concept is found again where most of its tags are, or, if one encoder made both libraries, where
its centroid is; of several, the one most like it. What is not found again may have gone into a
concept that has most of its tags (merged), and a new one may come out of one (split).

Shape suffixes: K concepts   D width of a vector
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from components import nearest
from components.catalogue.history import origin
from components.catalogue.limits import Limits
from components.library import Concept, Library

_N_CANDIDATES = 5
_SAME_NAME_COSINE = 0.5


@dataclass(frozen=True)
class Pair:
    """A concept and what it is in the other library."""

    before: Concept
    after: Concept
    overlap: float
    """Tags in common over all their tags."""

    cosine: float | None
    """None where two encoders made the libraries: their vectors cannot be compared."""

    @property
    def likeness(self) -> float:
        """Mean of what is known of overlap and cosine."""
        return self.overlap if self.cosine is None else (self.overlap + self.cosine) / 2


@dataclass(frozen=True)
class Moved:
    """A concept of one library, most of whose tags are in a concept of the other."""

    concept: Concept
    other: Concept
    share: float
    """Of its tags."""


@dataclass(frozen=True)
class Difference:
    """Every concept of both libraries, once: those of a pair together."""

    same: tuple[Pair, ...]
    """Same name, same tags."""

    changed: tuple[Pair, ...]
    """Same name, other tags."""

    renamed: tuple[Pair, ...]
    merged: tuple[Moved, ...]
    """Of the first library, into one of the second."""

    split: tuple[Moved, ...]
    """Of the second library, out of one of the first."""

    removed: tuple[Concept, ...]
    added: tuple[Concept, ...]

    @property
    def is_none(self) -> bool:
        """Whether both have the same concepts under the same names."""
        others = (self.changed, self.renamed, self.merged, self.split, self.removed, self.added)
        return not any(others)


def compare(before: Library, after: Library, limits: Limits) -> Difference:
    """From the first library to the second."""
    pairs = _paired(_candidates(before, after), limits)
    found = {pair.before.concept_id for pair in pairs}
    taken = {pair.after.concept_id for pair in pairs}
    lost = [concept for concept in before.concepts if concept.concept_id not in found]
    new = [concept for concept in after.concepts if concept.concept_id not in taken]
    merged = _moved(lost, after)
    split = _moved(new, before)
    gone = {each.concept.concept_id for each in merged}
    come = {each.concept.concept_id for each in split}
    kept = [pair for pair in pairs if pair.before.name == pair.after.name]
    return Difference(
        same=tuple(pair for pair in kept if pair.overlap == 1.0),
        changed=tuple(pair for pair in kept if pair.overlap < 1.0),
        renamed=tuple(pair for pair in pairs if pair.before.name != pair.after.name),
        merged=tuple(merged),
        split=tuple(split),
        removed=tuple(concept for concept in lost if concept.concept_id not in gone),
        added=tuple(concept for concept in new if concept.concept_id not in come),
    )


def _candidates(before: Library, after: Library) -> list[Pair]:
    """Pairs that share a tag or a name or lie near each other."""
    having = _having(after)
    named = {concept.name.casefold(): concept.concept_id for concept in after.concepts}
    comparable = origin(before).encoder_digest == origin(after).encoder_digest
    near: list[dict[int, float]] = [{} for _ in before.concepts]
    if comparable:
        k = min(_N_CANDIDATES, len(after.concepts))
        found = nearest.search(after.centroids_KD, before.centroids_KD, k)
        near = [
            dict(zip(rows, cosines, strict=True))
            for rows, cosines in zip(found.rows_QK.tolist(), found.cosine_QK.tolist(), strict=True)
        ]
    pairs = []
    for concept, beside in zip(before.concepts, near, strict=True):
        rows = {row for tag in concept.members for row in having.get(tag, ())} | set(beside)
        rows |= {named[name] for name in [concept.name.casefold()] if name in named}
        for row in sorted(rows):
            other = after.concepts[row]
            cosine = (
                float(before.centroids_KD[concept.concept_id] @ after.centroids_KD[row])
                if comparable
                else None
            )
            pairs.append(Pair(concept, other, _overlap(concept, other), cosine))
    return pairs


def _paired(candidates: Iterable[Pair], limits: Limits) -> list[Pair]:
    """Each concept in one pair at most, the likeliest first; in the order of the first library."""
    ordered = sorted(
        candidates,
        key=lambda pair: (-pair.likeness, pair.before.concept_id, pair.after.concept_id),
    )
    found: set[int] = set()
    taken: set[int] = set()
    pairs = []
    for pair in ordered:
        free = pair.before.concept_id not in found and pair.after.concept_id not in taken
        if free and _is_one(pair, limits):
            pairs.append(pair)
            found.add(pair.before.concept_id)
            taken.add(pair.after.concept_id)
    return sorted(pairs, key=lambda pair: pair.before.concept_id)


def _is_one(pair: Pair, limits: Limits) -> bool:
    cosine = 0.0 if pair.cosine is None else pair.cosine
    if pair.overlap >= limits.overlap or cosine >= limits.cosine:
        return True
    same_name = pair.before.name.casefold() == pair.after.name.casefold()
    return same_name and (pair.overlap > 0.0 or cosine >= _SAME_NAME_COSINE)


def _moved(concepts: Iterable[Concept], other: Library) -> list[Moved]:
    """Those of the concepts that have at least half of their tags in one concept of `other`."""
    having = _having(other)
    moved = []
    for concept in concepts:
        rows = Counter(row for tag in concept.members for row in having.get(tag, ()))
        if not rows:
            continue
        row, n_shared = min(rows.items(), key=lambda item: (-item[1], item[0]))
        if 2 * n_shared >= len(concept.members):
            moved.append(Moved(concept, other.concepts[row], n_shared / len(concept.members)))
    return moved


def _having(library: Library) -> Mapping[str, list[int]]:
    """Concepts by tag."""
    rows: dict[str, list[int]] = {}
    for concept in library.concepts:
        for tag in concept.members:
            rows.setdefault(tag, []).append(concept.concept_id)
    return rows


def _overlap(a: Concept, b: Concept) -> float:
    ours, theirs = set(a.members), set(b.members)
    return len(ours & theirs) / max(1, len(ours | theirs))
