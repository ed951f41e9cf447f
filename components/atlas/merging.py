"""Concepts that cannot be told apart become one (paper §4, stage two; method §1.3).

    cards embedded → mutual nearest neighbours at least `merge_cosine` alike → Louvain communities
    → which members of a community are one concept → again, until under 0.5 % change

A model that follows instructions says which are one. Without it embeddings do, and a chain of
neighbours does not make one concept of its two ends: the member on most chunks takes in those whose
cards are `merge_cosine` alike to its own, the next of the rest likewise, and so on. Two concepts
of one name whose centroids are alike are one in either case.

Shape suffixes: K concepts   D width of a vector
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import networkx as nx
import numpy as np

from components import nearest
from components.atlas.draft import CardVectors, Draft, History
from components.atlas.library_config import CanonicaliseConfig
from components.atlas.naming import ONE_MEANING, Card, describe
from components.atlas.vocabulary import key
from components.embedding import Floats

_MAX_ROUNDS = 4
_LEAST_CHANGE = 0.005
_EXACT_UP_TO = 20_000
_LEAST_RECALL = 0.98


@dataclass(frozen=True)
class One:
    """Concepts that are one, as places in a community, and the best name for it."""

    places: tuple[int, ...]
    name: str


Confirm = Callable[[Sequence[Sequence[Card]]], list[list[One]]]
"""Communities of cards → those of each that are one concept; who is in none stays alone."""


def merged(
    draft: Draft, vectors: CardVectors, config: CanonicaliseConfig, history: History,
    confirm: Confirm | None,
) -> Draft:  # fmt: skip
    """Merge until a round changes less than 0.5% of the concepts, four rounds at most."""
    for _ in range(_MAX_ROUNDS):
        before = draft.n
        draft = _of_one_name(draft, config, history)
        draft = _merge_once(draft, vectors, config, history, confirm)
        if before - draft.n <= _LEAST_CHANGE * before:
            break
    return _told_apart(_of_one_name(draft, config, history))


def _of_one_name(draft: Draft, config: CanonicaliseConfig, history: History) -> Draft:
    """Join concepts of one name, where their tags mean the same too."""
    centroid_KD = draft.groups.centroid_KD
    ones = []
    for groups in _by_name(draft):
        alike = centroid_KD[groups] @ centroid_KD[groups[0]] >= ONE_MEANING
        alike[0] = True
        if alike.sum() > 1:
            same = [group for group, is_same in zip(groups, alike, strict=True) if is_same]
            ones.append(_One(same, ""))
    return _joined(draft, ones, config, history, "they have one name")


def _told_apart(draft: Draft) -> Draft:
    """Concepts of one name and another meaning get a tag of their own behind it, then numbers."""
    cards = list(draft.cards)
    taken = {key(card.name) for card in cards}
    for groups in _by_name(draft):
        for group in groups[1:]:
            name, described = cards[group].name, cards[group].description
            tags = (f"{name} ({tag})" for tag in draft.members(group))
            numbers = (f"{name} ({number})" for number in itertools.count(2))
            fresh = next(each for each in itertools.chain(tags, numbers) if key(each) not in taken)
            taken.add(key(fresh))
            cards[group] = Card(fresh, described)
    return replace(draft, cards=tuple(cards))


def _by_name(draft: Draft) -> list[list[int]]:
    """Groups that share a name with others, those on most chunks first."""
    by_key: dict[str, list[int]] = {}
    for group in np.lexsort((np.arange(draft.n), -draft.groups.n_chunks_K)).tolist():
        by_key.setdefault(key(draft.cards[group].name), []).append(group)
    return [groups for groups in by_key.values() if len(groups) > 1]


def _merge_once(
    draft: Draft, vectors: CardVectors, config: CanonicaliseConfig, history: History,
    confirm: Confirm | None,
) -> Draft:  # fmt: skip
    cards_KD = vectors.of(draft.cards)
    communities = _communities(cards_KD, config)
    if not communities:
        return draft
    if confirm is None:
        ones = [one for each in communities for one in _alike(each, cards_KD, draft, config)]
        return _joined(draft, ones, config, history, f"cards at least {config.merge_cosine} alike")
    said = confirm([[draft.cards[group] for group in each] for each in communities])
    ones = [
        _One([community[place] for place in one.places], one.name)
        for community, found in zip(communities, said, strict=True)
        for one in found
        if len(one.places) > 1
    ]
    return _joined(draft, ones, config, history, "the language model cannot tell them apart")


@dataclass(frozen=True)
class _One:
    """Groups that are one concept. An empty name stands for that of the one on most chunks."""

    groups: list[int]
    name: str


def _communities(cards_KD: Floats, config: CanonicaliseConfig) -> list[list[int]]:
    """Louvain communities of the mutual-neighbour graph, without those of one concept."""
    k = min(config.n_neighbours + 1, len(cards_KD))
    index = nearest.build(cards_KD, _EXACT_UP_TO, _LEAST_RECALL, config.seed)
    found = index.search(cards_KD, k)
    alike = (found.cosine_QK >= config.merge_cosine) & (found.rows_QK >= 0)
    near = {
        (row, int(found.rows_QK[row, place])): float(found.cosine_QK[row, place])
        for row, place in zip(*(each.tolist() for each in np.nonzero(alike)), strict=True)
    }
    graph = nx.Graph()
    for (row, other), cosine in sorted(near.items()):
        if row < other and (other, row) in near:
            graph.add_edge(row, other, weight=cosine)
    if not graph:
        return []
    communities = nx.community.louvain_communities(graph, resolution=1.0, seed=config.seed)
    return sorted(sorted(community) for community in communities if len(community) > 1)


def _alike(
    community: Sequence[int], cards_KD: Floats, draft: Draft, config: CanonicaliseConfig
) -> list[_One]:
    """The offline rule: the commonest takes in what is like it, then the next of the rest."""
    left = sorted(community, key=lambda group: (-int(draft.groups.n_chunks_K[group]), group))
    ones = []
    while left:
        cosine = cards_KD[left] @ cards_KD[left[0]]
        mine = [
            group
            for group, each in zip(left, cosine.tolist(), strict=True)
            if group == left[0] or each >= config.merge_cosine
        ]
        if len(mine) > 1:
            ones.append(_One(mine, ""))
        left = [group for group in left if group not in mine]
    return ones


def _joined(
    draft: Draft, ones: Sequence[_One], config: CanonicaliseConfig, history: History, why: str
) -> Draft:
    """Each set of groups as one, described again, on record."""
    if not ones:
        return draft
    owner_K, cards = np.arange(draft.n), list(draft.cards)
    renamed = set()
    for one in ones:
        first = min(one.groups, key=lambda group: (-int(draft.groups.n_chunks_K[group]), group))
        owner_K[one.groups] = first
        name = one.name or cards[first].name
        history.tell("merge", [cards[group].name for group in one.groups], f"{why}; now {name}")
        cards[first] = replace(cards[first], name=name)
        renamed.add(first)
    joined = replace(draft, cards=tuple(cards)).regrouped(owner_K)
    held = sorted(set(owner_K.tolist()))
    shown = config.naming.max_members_shown
    cards_now = tuple(
        card
        if held[group] not in renamed or config.naming.follows_instructions
        else Card(card.name, describe(card.name, joined.members(group), shown))
        for group, card in enumerate(joined.cards)
    )
    return replace(joined, cards=cards_now)
