"""Names and descriptions of clusters (paper §4, stage two; method §1.3, prompt A.2).

A language model proposes names from the members; the members are proposals too. The proposal most
like the cluster's centroid wins, short ones preferred, so a model that rambles costs nothing. Small
models name better when they complete a list of examples than when they are asked in a chat.

Shape suffixes: N proposals   D width of a vector
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from components import llm
from components.atlas.clusters import Cluster, Tagged
from components.atlas.library_config import NamingConfig
from components.embedding import Embedder, Floats
from components.llm import Prompt
from model.events import Event, Events

_SHOTS = (
    ("sonnet, rhyme scheme, free verse, stanza", "Poetry"),
    ("for loop, recursion, array index, null pointer", "Programming"),
    ("kidney stone, renal failure, bladder", "Kidney disease"),
    ("prime number, divisor, modular arithmetic", "Number theory"),
    ("royal court, succession, coronation of a king", "Monarchy"),
)
_SYSTEM = "Name what the items have in common, in one to three words."
_SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"name": {"type": "string"}, "description": {"type": "string"}},
        "required": ["name", "description"],
    }
)
_DESCRIBE = (
    "You name concepts of a library. Given tags, answer in JSON with a name of at most five words "
    "and one sentence that says what they have in common and what is excluded."
)
_MAX_NAME_CHARS = 48


@dataclass(frozen=True)
class Card:
    """What a reader is told about a concept."""

    name: str
    description: str


@dataclass(frozen=True)
class Proposals:
    """What the model said about each cluster: names, and a description where it wrote one."""

    names: list[list[str]]
    descriptions: list[str]


def name(
    clusters: Sequence[Cluster], tagged: Tagged, encoder: Embedder, config: NamingConfig,
    events: Events,
) -> list[Card]:  # fmt: skip
    """A card for every cluster; no two names are alike but for case."""
    asked = config.namer == "language_model"
    proposed = _ask(clusters, tagged, config, events) if asked else _nothing(len(clusters))
    taken: set[str] = set()
    cards = []
    for cluster, names, said in zip(clusters, proposed.names, proposed.descriptions, strict=True):
        members = [tagged.texts[row] for row in cluster.members]
        ranked = _ranked([*names, *members], cluster.centroid(tagged), encoder, config)
        chosen = next((each for each in ranked if each.casefold() not in taken), None)
        chosen = chosen or _numbered(ranked[0], taken)
        taken.add(chosen.casefold())
        cards.append(Card(chosen, said or describe(chosen, members, config.max_members_shown)))
    return cards


def describe(name_of: str, members: Sequence[str], n_shown: int) -> str:
    """What a concept stands for, by its members."""
    others = [member for member in members if member.casefold() != name_of.casefold()]
    if not others:
        return f"Passages about or showing {name_of.lower()}."
    return f"Passages about or showing {name_of.lower()}: {', '.join(others[:n_shown])}."


def _nothing(n: int) -> Proposals:
    return Proposals([[] for _ in range(n)], [""] * n)


def _ask(
    clusters: Sequence[Cluster], tagged: Tagged, config: NamingConfig, events: Events
) -> Proposals:
    shown = [
        ", ".join(tagged.texts[row] for row in cluster.members[: config.max_members_shown])
        for cluster in clusters
    ]
    if config.describes:
        return _ask_for_cards(shown, config, events)
    prompts = [
        Prompt(
            system=_SYSTEM, shots=_SHOTS, question=items, max_tokens=config.max_name_tokens,
            temperature=config.temperature if sample else 0.0, seed=sample, continues_text=True,
        )
        for items in shown
        for sample in range(config.n_samples)
    ]  # fmt: skip
    with llm.connect(config.language_model) as client:
        answers = client.ask(prompts, _heard(events, len(prompts)))
    texts = [_cleaned(answer.text) for answer in answers]
    n = config.n_samples
    names = [[text for text in texts[at * n : (at + 1) * n] if text] for at in range(len(shown))]
    return Proposals(names, [""] * len(shown))


def _ask_for_cards(shown: Sequence[str], config: NamingConfig, events: Events) -> Proposals:
    prompts = [
        Prompt(system=_DESCRIBE, shots=(), question=items, max_tokens=160, schema=_SCHEMA)
        for items in shown
    ]
    with llm.connect(config.language_model) as client:
        answers = client.ask(prompts, _heard(events, len(prompts)))
    names, descriptions = [], []
    for answer in answers:
        try:
            said = json.loads(answer.text)
        except json.JSONDecodeError:
            said = {}  # counted as no proposal: the members still name the cluster
        names.append([found] if (found := _cleaned(str(said.get("name", "")))) else [])
        descriptions.append(" ".join(str(said.get("description", "")).split()))
    return Proposals(names, descriptions)


def _heard(events: Events, total: int):  # type: ignore[no-untyped-def]
    return lambda n: events(Event(step=n, total_steps=total))


def _ranked(
    proposals: Sequence[str], centroid_D: Floats, encoder: Embedder, config: NamingConfig
) -> list[str]:
    """Proposals as names, the best first."""
    names = list(dict.fromkeys(_as_name(text) for text in proposals if text))
    cosine_N = encoder.embed(names) @ centroid_D
    extra_N = np.asarray([max(0, len(each.split()) - 2) for each in names], dtype=np.float32)
    order = np.argsort(-(cosine_N - config.length_penalty * extra_N), kind="stable")
    return [names[int(row)] for row in order]


def _numbered(name_of: str, taken: set[str]) -> str:
    number = 2
    while f"{name_of} ({number})".casefold() in taken:
        number += 1
    return f"{name_of} ({number})"


def _as_name(text: str) -> str:
    return text[:1].upper() + text[1:]


def _cleaned(text: str) -> str:
    """The first line of an answer, without quotes, if it can be a name."""
    line = text.strip().splitlines()[0] if text.strip() else ""
    line = re.sub(r"^(Category|Name)\s*:\s*", "", line).strip(" .\"'*-")
    is_name = 3 <= len(line) <= _MAX_NAME_CHARS and re.search(r"[^\W\d_]{3}", line)
    return line if is_name and "," not in line and len(line.split()) <= 5 else ""
