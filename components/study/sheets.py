"""Questionnaires out of questions: who is asked what, in which order, under which opaque ids.

A page must not tell what is what. Ids are keyed hashes of what they stand for; names come in an
order drawn anew for each rater and concept; the key (`rows.parquet`) stays with the team.

Shape suffixes: C concept of the study   G rater
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import numpy as np

from components import contracts
from components.study.config import Raters
from components.study.form import Asked, Sheet, Shown, questionnaire

WORDS, PIPELINE, HUMAN, DISTRACTOR = KINDS = "words", "pipeline", "human", "distractor"
"""What a rating is of: in phase 1 the words themselves, in phase 2 one of three names."""

PAGES = "questionnaires"


@dataclass(frozen=True)
class Question:
    """One concept as raters meet it."""

    concept_id: int
    branch: str
    words: Sequence[str]
    names: Mapping[str, str]
    """Names to rate, by kind; in phase 1 none: the kind is `WORDS`, its name empty."""

    barred: frozenset[int] = frozenset()
    """Raters, by number, who must not be asked."""


@dataclass(frozen=True)
class Identity:
    """Whose questionnaires these are."""

    phase: int
    seed_text: str
    """Everything the study was drawn from; on no page, or a rater could compute the ids."""

    @property
    def study_id(self) -> str:
        return self._hashed("study")[:12]

    def item_id(self, rater_id: str, concept_id: int, name: str) -> str:
        """Equal names of one concept are one item: nobody can rate them apart."""
        return self._hashed(f"{rater_id}\0{concept_id}\0{name.casefold()}")[:16]

    def _hashed(self, text: str) -> str:
        key = hashlib.sha256(self.seed_text.encode()).digest()
        return hashlib.blake2b(f"{self.phase}\0{text}".encode(), key=key).hexdigest()


def write_study(
    folder: Path,
    questions: Sequence[Question],
    identity: Identity,
    raters: Raters,
    facts: Mapping[str, object],
) -> int:
    """The key, `study.json` and a page for every rater, sealed. Returns the number of pages."""
    random = np.random.default_rng([raters.seed, identity.phase])
    rows: list[dict[str, object]] = []
    pages = folder / PAGES
    pages.mkdir()
    shares = assigned(questions, raters, random)
    for number, share in enumerate(shares):
        rater_id = rater_name(number)
        asked = [questions[c] for c in random.permutation(share).tolist()]
        own = list(_rows(asked, rater_id, identity, random))
        rows += own
        sheet = Sheet(identity.study_id, rater_id, identity.phase, _as_asked(own))
        (pages / f"{rater_id}.html").write_text(questionnaire(sheet))
    said = {
        "study_id": identity.study_id, "phase": identity.phase, "n_concepts": len(questions),
        "concepts_per_rater": {rater_name(g): len(share) for g, share in enumerate(shares)},
        **facts,
    }  # fmt: skip
    (folder / "study.json").write_text(json.dumps(said, indent=1) + "\n")
    contracts.write(rows, folder, contracts.STUDY)
    return len(shares)


def rater_name(number: int) -> str:
    """`r01` for the first: all that a page says about who fills it in."""
    return f"r{number + 1:02d}"


def assigned(
    questions: Sequence[Question], raters: Raters, random: np.random.Generator
) -> list[list[int]]:
    """Concepts of each rater: every concept has its raters, and loads differ by one at most.

    Raters who are barred from a concept can make the loads differ by more.
    """
    shares: list[list[int]] = [[] for _ in range(raters.n_raters)]
    for c in random.permutation(len(questions)).tolist():
        free = [
            number
            for number in random.permutation(raters.n_raters).tolist()
            if number not in questions[c].barred
        ]
        for number in sorted(free, key=lambda g: len(shares[g]))[: raters.ratings_per_concept]:
            shares[number].append(c)
    return shares


def _rows(
    asked: Sequence[Question], rater_id: str, identity: Identity, random: np.random.Generator
) -> Iterator[dict[str, object]]:
    """The key of one rater's page, in its order; equal names share an item."""
    for position, question in enumerate(asked):
        by_item: dict[str, list[tuple[str, str]]] = {}
        for kind, name in question.names.items():
            item_id = identity.item_id(rater_id, question.concept_id, name)
            by_item.setdefault(item_id, []).append((kind, name))
        items = list(by_item)
        for place, i in enumerate(random.permutation(len(items)).tolist()):
            for kind, name in by_item[items[i]]:
                yield {
                    "item_id": items[i], "rater_id": rater_id, "position": position,
                    "place": place, "concept_id": question.concept_id,
                    "branch": question.branch, "kind": kind, "name": name,
                    "words": list(question.words),
                }  # fmt: skip


def _as_asked(rows: Sequence[Mapping[str, object]]) -> list[Asked]:
    """What of the key goes on a page: words, names and opaque ids."""
    asked = []
    for _, of_one in groupby(rows, key=itemgetter("position")):
        shown: dict[str, Shown] = {}
        words: Sequence[str] = ()
        for row in of_one:
            words = row["words"]  # type: ignore[assignment]
            item_id, name = str(row["item_id"]), str(row["name"])
            shown.setdefault(item_id, Shown(item_id, name))
        asked.append(Asked(words, list(shown.values())))
    return asked
