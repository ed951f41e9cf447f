"""Names and descriptions of groups of tags (paper §4, stage two; method §1.3).

Proposals are the members, what a language model says, and the titles of an encyclopedia nearest to
the group. The best is like the group's centroid, short, a noun phrase, and among members one that
many chunks carry; samples of a model that agree count for more. So a model that rambles costs
nothing. Small models name better when they complete a list of examples than when asked in a chat;
one that follows instructions (consulting.py) has its name taken as it is.

Shape suffixes: P proposals   K groups   D width of a vector
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from components import llm, nearest
from components.atlas.clusters import Groups
from components.atlas.library_config import NamingConfig
from components.atlas.tagged import Tagged
from components.atlas.vocabulary import Vocabulary, key
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
_MAX_NAME_CHARS = 48
_MEMBERS_PROPOSED = 40
_TITLES_PROPOSED = 3
_FREQUENCY_BONUS = 0.15
_NOUN_BONUS = 0.3
_TITLE_BONUS = 0.05
_MAJORITY_BONUS = 0.1
ONE_MEANING = 0.6
"""Cosine of centroids from which two groups of one name are one concept (merging.py)."""


@dataclass(frozen=True)
class Card:
    """What a reader is told about a concept."""

    name: str
    description: str

    @property
    def text(self) -> str:
        return f"{self.name}. {self.description}"


def sampled(
    tagged: Tagged, groups: Groups, config: NamingConfig, events: Events
) -> list[list[str]]:
    """Names that a model which completes examples gives each group; none where it rambles."""
    prompts = [
        Prompt(
            system=_SYSTEM, shots=_SHOTS, max_tokens=config.max_name_tokens,
            question=", ".join(members(tagged, groups, at)[: config.max_members_shown]),
            temperature=config.temperature if sample else 0.0, seed=sample, continues_text=True,
        )
        for at in range(groups.n)
        for sample in range(config.n_samples)
    ]  # fmt: skip
    with llm.connect(config.language_model) as client:
        answers = client.ask(
            prompts, lambda n: events(Event(step=n, total_steps=len(prompts)))
        )  # fmt: skip
    names, n = [cleaned(answer.text) for answer in answers], config.n_samples
    return [[name for name in names[at * n : (at + 1) * n] if name] for at in range(groups.n)]


def named(
    tagged: Tagged, groups: Groups, said: Sequence[Sequence[str]], words: Vocabulary,
    encoder: Embedder, config: NamingConfig,
) -> list[Card]:  # fmt: skip
    """A card for every group, the one on most chunks first to choose its name.

    Two groups get one name if their centroids are alike, as they are then merged, or if all their
    proposals are taken, as they are then told apart (merging.py).
    """
    near = (
        nearest.search(words.vectors_VD, groups.centroid_KD, _TITLES_PROPOSED).rows_QK.tolist()
        if words.titles
        else [[] for _ in range(groups.n)]
    )
    vector_of = _vectors(said, encoder)
    taken: dict[str, list[int]] = {}
    cards = [Card("", "")] * groups.n
    for group in np.lexsort((np.arange(groups.n), -groups.n_chunks_K)).tolist():
        proposals = _proposals(tagged, groups, group, said[group], near[group], words, vector_of)
        ranked = _ranked(proposals, groups.centroid_KD[group], words, config)
        chosen = next(
            (name for name in ranked if _free(name, group, groups.centroid_KD, taken)), ranked[0]
        )
        taken.setdefault(key(chosen), []).append(group)
        shown = members(tagged, groups, group)
        cards[group] = Card(chosen, describe(chosen, shown, config.max_members_shown))
    return cards


def members(tagged: Tagged, groups: Groups, group: int) -> list[str]:
    """The tags of a group, the commonest first."""
    return [tagged.texts[row] for row in groups.members(group).tolist()]


def describe(name_of: str, members_of: Sequence[str], n_shown: int) -> str:
    """What a concept stands for, by its members."""
    others = [member for member in members_of if member.casefold() != name_of.casefold()]
    if not others:
        return f"Passages about or showing {name_of.lower()}."
    return f"Passages about or showing {name_of.lower()}: {', '.join(others[:n_shown])}."


@dataclass(frozen=True)
class _Proposal:
    name: str
    vector_D: Floats
    bonus: float
    """What speaks for it besides its meaning."""


def _proposals(
    tagged: Tagged, groups: Groups, group: int, said: Sequence[str], near: Sequence[int],
    words: Vocabulary, vector_of: dict[str, Floats],
) -> list[_Proposal]:  # fmt: skip
    """Members, samples and titles, each spelling once."""
    rows = groups.members(group)[:_MEMBERS_PROPOSED].tolist()
    share: dict[str, float] = {}
    for row in rows:
        spelling = key(tagged.texts[row])
        share[spelling] = share.get(spelling, 0.0) + float(tagged.weight_N[row])
    most = max(share.values())
    agreed = Counter(key(name) for name in said)
    found: dict[str, _Proposal] = {}
    is_entity = groups.kind(group) == "entity"
    for row in rows:
        text = tagged.texts[row]
        bonus = _FREQUENCY_BONUS * float(np.log1p(share[key(text)]) / np.log1p(most))
        name = words.title_of.get(key(text)) or _as_name(text, is_entity)
        found.setdefault(key(text), _Proposal(name, tagged.vectors_ND[row], bonus))
    for name in said:
        bonus = _MAJORITY_BONUS if agreed[key(name)] > 1 else 0.0
        found.setdefault(key(name), _Proposal(_as_name(name, is_entity), vector_of[name], bonus))
    for at in near:
        title = words.titles[at]
        found.setdefault(key(title), _Proposal(title, words.vectors_VD[at], _TITLE_BONUS))
    return list(found.values())


def _ranked(
    proposals: Sequence[_Proposal], centroid_D: Floats, words: Vocabulary, config: NamingConfig
) -> list[str]:
    """Names, the best first."""
    cosine_P = np.stack([each.vector_D for each in proposals]) @ centroid_D
    score_P = [
        cosine
        + each.bonus
        + _NOUN_BONUS * words.noun(each.name)
        - config.length_penalty * max(0, len(each.name.split()) - 2)
        for each, cosine in zip(proposals, cosine_P.tolist(), strict=True)
    ]
    order = np.argsort(-np.asarray(score_P), kind="stable")
    return [proposals[at].name for at in order.tolist()]


def _free(name: str, group: int, centroid_KD: Floats, taken: dict[str, list[int]]) -> bool:
    """Whether no group has the name, or one that means the same."""
    others = taken.get(key(name), [])
    return all(float(centroid_KD[other] @ centroid_KD[group]) >= ONE_MEANING for other in others)


def _vectors(said: Sequence[Sequence[str]], encoder: Embedder) -> dict[str, Floats]:
    unique = sorted({name for names in said for name in names})
    return dict(zip(unique, encoder.embed(unique), strict=True)) if unique else {}


def _as_name(text: str, is_entity: bool) -> str:
    if is_entity:
        return " ".join(word[:1].upper() + word[1:] for word in text.split())
    return text[:1].upper() + text[1:]


def cleaned(text: str) -> str:
    """The first line of an answer, without quotes, if it can be a name."""
    line = text.strip().splitlines()[0] if text.strip() else ""
    line = re.sub(r"^(Category|Name)\s*:\s*", "", line).strip(" .\"'*-")
    is_name = 3 <= len(line) <= _MAX_NAME_CHARS and re.search(r"[^\W\d_]{3}", line)
    return line if is_name and "," not in line and len(line.split()) <= 5 else ""
