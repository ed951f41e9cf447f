"""Draw a study: concepts over the branches of the taxonomy, and a page for every rater (app. D).

study.json            what was drawn from what, and how many concepts were passed over
rows.parquet          the key: what each item of each page stands for; not for raters
questionnaires/       one HTML page a rater: words, a name in the rater's own words, 1 to 5
"""

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from components import contracts
from components.library import open_library
from components.study.config import DrawConfig
from components.study.evidence import evidence
from components.study.sheets import WORDS, Identity, Question, write_study
from components.tokens import TokenStream


class StudyError(ValueError):
    """A study cannot be made of this. The message says of what there is too little."""


def draw(concepts: Path, lifted: Path, tokens: Path, study: Path, config: DrawConfig) -> int:
    """Write the questionnaires of phase 1. Returns their number."""
    library = open_library(concepts)
    words = evidence(lifted, TokenStream(tokens), config)
    branch = {concept.concept_id: concept.parent for concept in library.concepts}
    readable = [k for k in branch if len(words.get(k, ())) == config.n_words]
    if len(readable) < config.n_concepts:
        raise StudyError(
            f"{len(readable)} of {len(branch)} concepts have {config.n_words} readable lifted "
            f"words of support {config.min_support} or more, but the study wants "
            f"{config.n_concepts}; lower n_concepts, n_words or min_support, or lift from more text"
        )
    random = np.random.default_rng([config.seed, 0])
    drawn = stratified({k: branch[k] for k in readable}, config.n_concepts, random)
    questions = [Question(k, branch[k], words[k], {WORDS: ""}) for k in drawn]
    digests = {
        "concepts": contracts.manifest_of(concepts).digest,
        "lifted_words": contracts.manifest_of(lifted).digest,
        "tokens": contracts.manifest_of(tokens).digest,
    }
    facts = {
        "library_digest": library.digest,
        "drawn_from": digests,
        "n_known_concepts": len(branch),
        "n_passed_over": len(branch) - len(readable),
        "branches": _told(branch, readable, drawn),
    }
    identity = Identity(1, f"{digests}\0{config.model_dump_json()}")
    return write_study(study, questions, identity, config, facts)


def stratified(branch: Mapping[int, str], n_wanted: int, random: np.random.Generator) -> list[int]:
    """Concepts drawn in proportion to the sizes of the branches, each with one at least.

    With fewer places than branches, the largest branches have one each.
    """
    members: dict[str, list[int]] = {}
    for concept_id, name in sorted(branch.items()):
        members.setdefault(name, []).append(concept_id)
    places = shared_out({name: len(found) for name, found in members.items()}, n_wanted)
    drawn: list[int] = []
    for name in sorted(members):
        drawn += random.choice(members[name], places[name], replace=False).tolist()
    return sorted(drawn)


def shared_out(sizes: Mapping[str, int], n_wanted: int) -> dict[str, int]:
    """Places by branch: one each, then to whichever is furthest below its share; ties by name."""
    total = sum(sizes.values())
    by_size = sorted(sizes, key=lambda name: (-sizes[name], name))
    places = {name: int(rank < n_wanted) for rank, name in enumerate(by_size)}
    for _ in range(n_wanted - sum(places.values())):
        gap = {
            name: n_wanted * sizes[name] / total - places[name]
            if places[name] < sizes[name] else -math.inf
            for name in by_size
        }  # fmt: skip
        places[max(by_size, key=lambda name: gap[name])] += 1
    return places


def _told(
    branch: Mapping[int, str], readable: list[int], drawn: list[int]
) -> dict[str, dict[str, int]]:
    """Of each branch: its concepts, those with enough words, and those drawn."""
    counted = {
        "known": Counter(branch.values()),
        "readable": Counter(branch[k] for k in readable),
        "drawn": Counter(branch[k] for k in drawn),
    }
    return {
        name: {what: count[name] for what, count in counted.items()}
        for name in sorted(set(branch.values()))
    }
