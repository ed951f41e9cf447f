"""Phase 2: the same words with three names, which raters cannot tell apart (paper app. D).

    pipeline     the name in the library
    human        a name that a rater gave in phase 1, drawn among those given
    distractor   the library's name of a concept of another branch

The author of the human name is not asked about that concept.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from components import contracts
from components.library import Library, open_library
from components.study.config import PairConfig
from components.study.drawing import StudyError
from components.study.sheets import (
    DISTRACTOR,
    HUMAN,
    PIPELINE,
    Identity,
    Question,
    rater_name,
    write_study,
)

Row = Mapping[str, object]


def pair(study: Path, answers: Path, concepts: Path, paired: Path, config: PairConfig) -> int:
    """Write the questionnaires of phase 2. Returns their number.

    A concept that nobody named in phase 1 is passed over and counted. Where the human name is the
    library's, they are one item, and its rating counts for both.
    """
    drawn = contracts.json_file(study, "study.json")
    library = open_library(concepts)
    _check_same_study(study, drawn, answers, library)
    given: dict[int, list[Row]] = {}
    for row in contracts.read(answers, contracts.ANSWERS).to_pylist():
        if row["name"]:
            given.setdefault(row["concept_id"], []).append(row)
    words = {
        row["concept_id"]: row["words"]
        for row in contracts.read(study, contracts.STUDY).to_pylist()
    }
    random = np.random.default_rng([config.seed, 0])
    questions = [
        _question(concept_id, words[concept_id], given[concept_id], library, random, config)
        for concept_id in sorted(words)
        if concept_id in given
    ]
    if not questions:
        raise StudyError(f"{answers} holds no name for any concept: there is nothing to compare")
    digests = {
        "study": contracts.manifest_of(study).digest,
        "answers": contracts.manifest_of(answers).digest,
        "concepts": contracts.manifest_of(concepts).digest,
    }
    facts = {
        "follows": drawn["study_id"],
        "library_digest": drawn["library_digest"],
        "drawn_from": digests,
        "n_passed_over": len(words) - len(questions),
        "n_same_name": sum(
            question.names[PIPELINE].casefold() == question.names[HUMAN].casefold()
            for question in questions
        ),
    }
    identity = Identity(2, f"{digests}\0{config.model_dump_json()}")
    return write_study(paired, questions, identity, config, facts)


def _check_same_study(
    study: Path, drawn: Mapping[str, object], answers: Path, library: Library
) -> None:
    if drawn["phase"] != 1:
        raise StudyError(f"{study} is of phase {drawn['phase']}; names are paired after phase 1")
    collected = contracts.json_file(answers, "collected.json")
    if collected["study_id"] != drawn["study_id"]:
        raise StudyError(
            f"{answers} answers study {collected['study_id']}, {study} is {drawn['study_id']}; "
            f"give the answers that were collected for it"
        )
    if library.digest != drawn["library_digest"]:
        raise StudyError(
            f"the concepts are those of library {library.digest[:12]}…, the study was drawn from "
            f"{str(drawn['library_digest'])[:12]}…; give the one it was drawn from"
        )


def _question(
    concept_id: int, words: list[str], given: list[Row], library: Library,
    random: np.random.Generator, config: PairConfig,
) -> Question:  # fmt: skip
    """One concept with its three names, and its author barred."""
    own = library.concepts[concept_id]
    chosen = given[int(random.integers(len(given)))]
    taken = {as_shown(name).casefold() for name in (own.name, str(chosen["name"]))}
    others = [
        other.name
        for other in library.concepts
        if other.parent != own.parent and as_shown(other.name).casefold() not in taken
    ]
    if not others:
        raise StudyError(
            f"every concept is of the branch {own.parent!r}; a distractor comes from another one. "
            f"Draw from a library with two branches or more"
        )
    names = {
        PIPELINE: as_shown(own.name),
        HUMAN: as_shown(str(chosen["name"])),
        DISTRACTOR: as_shown(others[int(random.integers(len(others)))]),
    }
    authors = [rater_name(g) for g in range(config.n_raters)]
    barred = {authors.index(str(chosen["rater_id"]))} if chosen["rater_id"] in authors else set()
    return Question(concept_id, own.parent, words, names, frozenset(barred))


def as_shown(name: str) -> str:
    """A name as all three are written: a small first letter or a full stop would tell whose."""
    plain = " ".join(name.split()).rstrip(".,;:")
    return plain[:1].upper() + plain[1:]
