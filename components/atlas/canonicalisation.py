"""Atlas, stage two: from free-form tags to a frozen library of concepts (paper §4, method §1.3).

    unique tags → embedded → k-means at the knee of the coherence curve → incoherent and rare
    clusters dropped → named → duplicates merged → tone and document concepts that are on nearly
    everything dropped → sorted into a taxonomy → frozen under a digest, with the history of every
    drop and merge

Shape suffixes: N tags   K concepts   D width of a vector
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from components import contracts, embedding
from components.atlas import consulting, naming, taxonomy
from components.atlas.clusters import Sweep, sweep
from components.atlas.consulting import Verdict
from components.atlas.draft import CardVectors, Draft, History
from components.atlas.library_config import CanonicaliseConfig
from components.atlas.merging import merged
from components.atlas.naming import Card
from components.atlas.tagged import KINDS, Places, Tagged, places
from components.atlas.vocabulary import Vocabulary, vocabulary
from components.embedding import Embedder
from components.library import freeze
from model.events import Events, ignore


def canonicalise(
    tags: Path, chunks: Path, concepts: Path, config: CanonicaliseConfig, events: Events = ignore
) -> int:
    """Make the library. Returns the number of concepts; ids go from the commonest to the rarest."""
    contracts.verify(chunks, contracts.CHUNKS)
    encoder = embedding.load(config.encoder)
    found = places(contracts.read(tags, contracts.TAGS))
    words = vocabulary(config.naming.vocabulary, found.texts, encoder)
    common = frequent(found, config.min_tag_chunks)
    history = History()
    tagged = common.tagged(encoder.embed(common.texts))
    clusters = sweep(tagged, config)
    if len(common.texts) < len(found.texts):
        history.tell("drop", (), f"{len(found.texts) - len(common.texts)} tags on fewer than "
                     f"{config.min_tag_chunks} chunks")  # fmt: skip
    vectors = CardVectors(encoder)
    draft = library_of(tagged, clusters, words, vectors, config, history, events)
    near = taxonomy.candidates(vectors.of(draft.cards), encoder)
    rows = rows_of(draft, _parents(draft, near, config, history))
    facts = _facts(found, clusters, encoder, history, len(rows))
    return freeze(rows, draft.groups.centroid_KD, facts, concepts)


def frequent(found: Places, min_chunks: int) -> Places:
    """Tags on enough chunks; all of them if none is."""
    n_chunks_N = np.diff(found.offset_N)
    keep_N = n_chunks_N >= min(min_chunks, int(n_chunks_N.max()))
    return Places(
        texts=[found.texts[row] for row in np.flatnonzero(keep_N).tolist()],
        kind_N=found.kind_N[keep_N],
        offset_N=np.concatenate([[0], np.cumsum(n_chunks_N[keep_N])]).astype(np.int64),
        chunk_M=found.chunk_M[np.repeat(keep_N, n_chunks_N)],
        n_chunks=found.n_chunks,
    )


def library_of(
    tagged: Tagged, clusters: Sweep, words: Vocabulary, vectors: CardVectors,
    config: CanonicaliseConfig, history: History, events: Events = ignore,
) -> Draft:  # fmt: skip
    """Clusters as concepts, the commonest first. Raises ValueError where none is left."""
    unnamed = Draft(tagged, clusters.groups, (Card("", ""),) * clusters.groups.n)
    draft = _without_weak(unnamed, config, history)
    draft = _named(draft, words, vectors.encoder, config, history, events)
    asks = config.naming.namer == "language_model" and config.naming.follows_instructions
    confirm = partial(consulting.one, config=config.naming) if asks else None
    draft = merged(draft, vectors, config, history, confirm)
    return _without_common(draft, config, history).ranked()


def _without_weak(draft: Draft, config: CanonicaliseConfig, history: History) -> Draft:
    """Clusters with enough chunks, less the least coherent share of them."""
    groups = draft.groups
    keep_K = groups.n_chunks_K >= config.min_chunks
    for group in np.flatnonzero(~keep_K).tolist():
        reason = f"on {groups.n_chunks_K[group]} chunks, fewer than {config.min_chunks}"
        history.tell("drop", draft.members(group), reason)
    supported = np.flatnonzero(keep_K)
    order = supported[np.argsort(groups.coherence_K[supported], kind="stable")]
    for group in order[: int(len(order) * config.drop_share)].tolist():
        keep_K[group] = False
        reason = f"coherence {groups.coherence_K[group]:.3f} is among the lowest"
        history.tell("drop", draft.members(group), reason)
    return _kept(draft, keep_K, draft.n, config)


def _named(
    draft: Draft, words: Vocabulary, encoder: Embedder, config: CanonicaliseConfig,
    history: History, events: Events,
) -> Draft:  # fmt: skip
    """Cards for all groups; a model that follows instructions can refuse a group."""
    tagged, groups, told = draft.tagged, draft.groups, config.naming
    said: list[list[str]] = [[] for _ in range(groups.n)]
    if told.namer == "language_model" and not told.follows_instructions:
        said = naming.sampled(tagged, groups, told, events)
    cards = naming.named(tagged, groups, said, words, encoder, told)
    if told.namer == "medoid" or not told.follows_instructions:
        return _without_unnamed(replace(draft, cards=tuple(cards)), words, config, history)
    verdicts = consulting.cards(tagged, groups, told, config.seed, events)
    keep_K = np.ones(groups.n, dtype=bool)
    for group, verdict in enumerate(verdicts):
        if verdict.was_read and verdict.coherent < told.least_coherent:
            keep_K[group] = False
            reason = f"the language model rates its coherence {verdict.coherent} of 5"
            history.tell("drop", draft.members(group), reason)
    cards = [_card(verdict, card) for verdict, card in zip(verdicts, cards, strict=True)]
    return _kept(replace(draft, cards=tuple(cards)), keep_K, groups.n, config)


def _without_unnamed(
    draft: Draft, words: Vocabulary, config: CanonicaliseConfig, history: History
) -> Draft:
    """Without groups that no noun phrase stands for, such as forms of a verb."""
    noun_K = np.array([words.noun(card.name) for card in draft.cards])
    keep_K = noun_K >= config.naming.least_noun
    for group in np.flatnonzero(~keep_K).tolist():
        reason = f"no noun phrase stands for it; the best name is {draft.cards[group].name}"
        history.tell("drop", draft.members(group), reason)
    return _kept(draft, keep_K, draft.n, config)


def _card(verdict: Verdict, card: Card) -> Card:
    """What the model wrote, and ours where it wrote nothing that can be read."""
    return Card(verdict.name or card.name, verdict.description or card.description)


def _without_common(draft: Draft, config: CanonicaliseConfig, history: History) -> Draft:
    """Without concepts of the capped kinds that are on nearly everything; commonest first."""
    share_K = draft.groups.n_chunks_K / draft.tagged.n_chunks
    capped = [KINDS.index(kind) for kind in config.capped_kinds]
    capped_K = np.isin(draft.groups.kind_K, capped)
    keep_K = ~capped_K | (share_K <= config.max_prevalence)
    for group in np.flatnonzero(~keep_K).tolist():
        reason = (
            f"a {draft.groups.kind(group)} concept on {share_K[group]:.1%} of tagged chunks, above "
            f"the cap {config.max_prevalence:.0%}"
        )
        history.tell("drop", [draft.cards[group].name], reason)
    return _kept(draft, keep_K, draft.n, config)


def _kept(
    draft: Draft, keep_K: NDArray[np.bool_], n_clusters: int, config: CanonicaliseConfig
) -> Draft:
    if not keep_K.any():
        raise ValueError(
            f"no concept is left of {n_clusters} clusters of {draft.tagged.n} tags; tag more "
            f"chunks, lower min_chunks ({config.min_chunks}) or drop_share ({config.drop_share}), "
            f"or raise max_prevalence ({config.max_prevalence})"
        )
    return draft if keep_K.all() else draft.kept(keep_K)


def _parents(
    draft: Draft, near: Sequence[Sequence[str]], config: CanonicaliseConfig, history: History
) -> list[str]:
    """The branch nearest to each concept, or the one a model picks of the nearest."""
    nearest = [branches[0] for branches in near]
    if config.naming.namer == "medoid" or not config.naming.follows_instructions:
        return nearest
    checked = consulting.parents(draft.cards, near, config.naming)
    for card, before, after in zip(draft.cards, nearest, checked, strict=True):
        if before != after:
            history.tell("move", [card.name], f"by the language model, from {before} to {after}")
    return checked


def rows_of(draft: Draft, parents: Sequence[str]) -> list[dict[str, object]]:
    groups = draft.groups
    return [
        {
            "concept_id": group, "name": card.name, "description": card.description,
            "kind": groups.kind(group), "parent": parent, "taxonomy": f"{parent} / {card.name}",
            "prevalence": float(groups.n_chunks_K[group] / draft.tagged.n_chunks),
            "n_chunks": int(groups.n_chunks_K[group]),
            "coherence": float(groups.coherence_K[group]), "members": draft.members(group),
        }
        for group, (card, parent) in enumerate(zip(draft.cards, parents, strict=True))
    ]  # fmt: skip


def _facts(
    found: Places, clusters: Sweep, encoder: Embedder, history: History, n_concepts: int
) -> dict[str, object]:
    return {
        "encoder": encoder.name,
        "encoder_digest": encoder.digest,
        "n_concepts": n_concepts,
        "n_tags": len(found.texts),
        "n_tagged_chunks": found.n_chunks,
        "n_clusters": clusters.groups.n,
        "n_tags_swept": clusters.n_tags,
        "coherence_curve": [{"k": k, "coherence": value} for k, value in clusters.curve.items()],
        "history": history.steps,
    }
