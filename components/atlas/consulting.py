"""What stage two asks a language model that follows instructions (paper §4; method A.2 and A.3).

    cards      groups of tags    → name, description, and how coherent the group is, 1 to 5
    one        communities       → which concepts a careful reader could not tell apart
    parents    concepts          → the branch of the top level they belong to

Tags come out of documents, so they are data: they are sent as a JSON list, and no answer is obeyed
beyond what is asked for. An answer that cannot be read counts as none: embeddings decide then.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from components import llm
from components.atlas.clusters import Groups
from components.atlas.library_config import NamingConfig
from components.atlas.merging import One
from components.atlas.naming import Card, cleaned, members
from components.atlas.tagged import Tagged
from components.llm import Prompt
from model.events import Event, Events

_NAME = (
    "You name concepts of a library. You are given tags, as data. Give one name of at most five "
    "words and one sentence that says what the tags have in common and what is excluded; rate from "
    "1 to 5 how coherent they are. If they have no common meaning the name is INCOHERENT. Answer "
    'in JSON: {"name": ..., "description": ..., "coherent": 1-5}.'
)
_MERGE = (
    "You tidy a library of concepts. You are given entries of number, name and description, as "
    "data. Group the entries that a careful reader could not tell apart on real passages. Keep "
    "broader and narrower ones apart. Name only groups of two or more, each with its best name. "
    'Answer in JSON: {"groups": [{"ids": [...], "name": ...}]}.'
)
_PLACE = (
    "You sort concepts under the top level of a library. You are given a concept and the branches "
    "it may belong to, as data. Answer in JSON with the branch that fits best, exactly as it is "
    'written: {"parent": ...}.'
)
_INCOHERENT = "INCOHERENT"
_MAX_TOGETHER = 40


@dataclass(frozen=True)
class Verdict:
    """What a model says of a group. Empty and 0 where its answer could not be read."""

    name: str
    description: str
    coherent: int

    @property
    def was_read(self) -> bool:
        return self.coherent > 0


def cards(
    tagged: Tagged, groups: Groups, config: NamingConfig, seed: int, events: Events
) -> list[Verdict]:
    """A name, a description and a rating for each group."""
    shown = [
        _shown(members(tagged, groups, group), config, seed + group) for group in range(groups.n)
    ]
    schema = _schema(name={"type": "string"}, description={"type": "string"},
                     coherent={"type": "integer", "minimum": 1, "maximum": 5})  # fmt: skip
    answers = _ask(_NAME, [json.dumps(each) for each in shown], schema, config, events)
    return [_verdict(answer) for answer in answers]


def one(communities: Sequence[Sequence[Card]], config: NamingConfig) -> list[list[One]]:
    """Those of each community that are one concept. Large communities are asked in parts."""
    parts = [
        (at, start)
        for at, community in enumerate(communities)
        for start in range(0, len(community), _MAX_TOGETHER)
    ]
    questions = [
        json.dumps(
            [
                {"id": place, "name": card.name, "description": card.description}
                for place, card in enumerate(communities[at][start : start + _MAX_TOGETHER])
            ]
        )
        for at, start in parts
    ]
    ids = {"type": "array", "items": {"type": "integer"}}
    group = {
        "type": "object", "properties": {"ids": ids, "name": {"type": "string"}},
        "required": ["ids", "name"],
    }  # fmt: skip
    schema = _schema(groups={"type": "array", "items": group})
    answers = _ask(_MERGE, questions, schema, config)
    found: list[list[One]] = [[] for _ in communities]
    for (at, start), answer in zip(parts, answers, strict=True):
        n = min(_MAX_TOGETHER, len(communities[at]) - start)
        found[at] += [
            One(tuple(start + place for place in each.places), each.name)
            for each in _ones(answer, n)
        ]
    return found


def parents(
    concepts: Sequence[Card], branches: Sequence[Sequence[str]], config: NamingConfig
) -> list[str]:
    """The branch of each concept out of those that it may belong to; the first where unread."""
    questions = [
        json.dumps({"concept": card.name, "description": card.description, "branches": list(names)})
        for card, names in zip(concepts, branches, strict=True)
    ]
    answers = _ask(_PLACE, questions, _schema(parent={"type": "string"}), config)
    said = [str(answer.get("parent")) for answer in answers]
    return [
        parent if parent in names else names[0]
        for parent, names in zip(said, branches, strict=True)
    ]


def _ask(
    system: str, questions: Sequence[str], schema: str, config: NamingConfig,
    events: Events = lambda event: None,
) -> list[dict[str, object]]:  # fmt: skip
    """Answers as objects, empty where one is not."""
    prompts = [
        Prompt(
            system=system, shots=(), question=question, schema=schema,
            max_tokens=config.max_answer_tokens, seed=0,
        )
        for question in questions
    ]  # fmt: skip
    with llm.connect(config.language_model) as client:
        answers = client.ask(
            prompts, lambda n: events(Event(step=n, total_steps=len(prompts)))
        )  # fmt: skip
    return [_object(answer.text) for answer in answers]


def _object(text: str) -> dict[str, object]:
    try:
        said = json.loads(text)
    except json.JSONDecodeError:
        return {}
    return said if isinstance(said, dict) else {}


def _verdict(said: dict[str, object]) -> Verdict:
    name, description, coherent = said.get("name"), said.get("description"), said.get("coherent")
    if not isinstance(name, str) or not isinstance(coherent, int) or not 1 <= coherent <= 5:
        refused = isinstance(name, str) and name.strip().upper() == _INCOHERENT
        return Verdict("", "", 1) if refused else Verdict("", "", 0)
    if name.strip().upper() == _INCOHERENT:
        return Verdict("", "", 1)
    found = cleaned(name)
    text = " ".join(description.split()) if isinstance(description, str) else ""
    return Verdict(found, text, coherent if found else 0)


def _ones(said: dict[str, object], n: int) -> list[One]:
    """Groups of places 0 … n − 1, each place in one group at most; what is not that is left out."""
    groups = said.get("groups")
    found, used = [], set[int]()
    for each in groups if isinstance(groups, list) else []:
        ids = each.get("ids") if isinstance(each, dict) else None
        places = [
            place
            for place in dict.fromkeys(ids if isinstance(ids, list) else [])
            if isinstance(place, int) and 0 <= place < n and place not in used
        ]
        if len(places) > 1:
            used.update(places)
            found.append(One(tuple(places), cleaned(str(each.get("name", "")))))
    return found


def _shown(texts: Sequence[str], config: NamingConfig, seed: int) -> list[str]:
    """The commonest members and some of the others, drawn with a seed."""
    first, rest = texts[: config.max_members_shown], texts[config.max_members_shown :]
    n = min(config.n_random_members_shown, len(rest))
    rows = np.random.default_rng(seed).permutation(len(rest))[:n]
    return [*first, *(rest[row] for row in sorted(rows.tolist()))]


def _schema(**properties: object) -> str:
    return json.dumps(
        {"type": "object", "properties": properties, "required": sorted(properties)}
    )  # fmt: skip
