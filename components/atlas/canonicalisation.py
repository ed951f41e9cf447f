"""Atlas, stage two: from free-form tags to a frozen library of concepts (paper §4, method §1.3).

    unique tags → embedded → k-means at the knee of the coherence curve → incoherent and rare
    clusters dropped → named → duplicates merged → too common ones dropped → sorted into a
    taxonomy → frozen under a digest, with the history of every drop and merge

Shape suffixes: K concepts   D width of a vector
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import networkx as nx
import numpy as np

from components import contracts, embedding, nearest
from components.atlas import taxonomy
from components.atlas.clusters import Cluster, Tagged, cluster_of, sweep
from components.atlas.library_config import CanonicaliseConfig
from components.atlas.naming import Card, describe, name
from components.embedding import Embedder
from components.library import freeze
from model.events import Events, ignore

_MAX_ROUNDS = 4


def canonicalise(
    tags: Path, chunks: Path, concepts: Path, config: CanonicaliseConfig, events: Events = ignore
) -> int:
    """Make the library. Returns the number of concepts; ids go from the commonest to the rarest."""
    contracts.verify(chunks, contracts.CHUNKS)
    encoder = embedding.load(config.encoder)
    tagged = read_tags(tags, encoder)
    clusters, curve = sweep(tagged, config.sweep, config.seed)
    history = History()
    kept = _without_weak(clusters, tagged, config, history)
    if not kept:
        raise ValueError(_nothing_left(clusters, tagged, config))
    cards = name(kept, tagged, encoder, config.naming, events)
    made = [_Concept(cluster, card) for cluster, card in zip(kept, cards, strict=True)]
    made = _merged(made, tagged, encoder, config, history)
    made = _without_common(made, tagged, config, history)
    if not made:
        raise ValueError(_nothing_left(clusters, tagged, config))
    made.sort(key=lambda each: (-len(each.cluster.chunks(tagged)), each.card.name))
    rows = _rows(made, tagged, encoder)
    library = {
        "encoder": encoder.name,
        "encoder_digest": encoder.digest,
        "n_concepts": len(rows),
        "n_tags": len(tagged.texts),
        "n_tagged_chunks": tagged.n_chunks,
        "n_clusters": len(clusters),
        "coherence_curve": [{"k": k, "coherence": value} for k, value in sorted(curve.items())],
        "history": history.steps,
    }
    centroids_KD = np.stack([each.cluster.centroid(tagged) for each in made])
    return freeze(rows, centroids_KD, library, concepts)


@dataclass(frozen=True)
class _Concept:
    cluster: Cluster
    card: Card


@dataclass(frozen=True)
class History:
    """What was dropped and merged on the way, and why."""

    steps: list[dict[str, object]] = field(default_factory=list)

    def tell(self, action: str, names: Sequence[str], reason: str) -> None:
        """Remember one step."""
        self.steps.append({"action": action, "names": list(names), "reason": reason})


def read_tags(tags: Path, encoder: Embedder) -> Tagged:
    """Unique tags in alphabetical order, with the chunks that carry them."""
    table = contracts.read(tags, contracts.TAGS)
    chunks: dict[str, set[int]] = {}
    kinds: dict[str, dict[str, int]] = {}
    for chunk_id, tag, kind in zip(
        table["chunk_id"].to_pylist(), table["tag"].to_pylist(), table["kind"].to_pylist(),
        strict=True,
    ):  # fmt: skip
        chunks.setdefault(tag, set()).add(chunk_id)
        kinds.setdefault(tag, {})[kind] = kinds.get(tag, {}).get(kind, 0) + 1
    texts = tuple(sorted(chunks))
    return Tagged(
        texts=texts,
        kinds=tuple(max(sorted(kinds[text]), key=kinds[text].__getitem__) for text in texts),
        chunks=tuple(frozenset(chunks[text]) for text in texts),
        vectors_ND=encoder.embed(texts),
        n_chunks=len(set(table["chunk_id"].to_pylist())),
    )


def _nothing_left(clusters: Sequence[Cluster], tagged: Tagged, config: CanonicaliseConfig) -> str:
    return (
        f"no concept is left of {len(clusters)} clusters of {len(tagged.texts)} tags; tag more "
        f"chunks, lower min_chunks ({config.min_chunks}) or drop_share ({config.drop_share}), or "
        f"raise max_prevalence ({config.max_prevalence})"
    )


def _without_weak(
    clusters: Sequence[Cluster], tagged: Tagged, config: CanonicaliseConfig, history: History
) -> list[Cluster]:
    """Clusters with enough chunks, less the least coherent share of them."""
    supported = []
    for cluster in clusters:
        n = len(cluster.chunks(tagged))
        if n >= config.min_chunks:
            supported.append(cluster)
        else:
            history.tell("drop", _members(cluster, tagged), f"on {n} chunks, fewer than needed")
    by_coherence = sorted(supported, key=lambda cluster: cluster.coherence)
    weak = by_coherence[: int(len(by_coherence) * config.drop_share)]
    for cluster in weak:
        reason = f"coherence {cluster.coherence:.3f} is among the lowest"
        history.tell("drop", _members(cluster, tagged), reason)
    return [cluster for cluster in supported if cluster not in weak]


def _merged(
    made: list[_Concept], tagged: Tagged, encoder: Embedder, config: CanonicaliseConfig,
    history: History,
) -> list[_Concept]:  # fmt: skip
    """Merge what cannot be told apart, until a round changes less than 0.5% of the concepts."""
    for _ in range(_MAX_ROUNDS):
        before = len(made)
        made = _merge_once(made, tagged, encoder, config, history)
        if before - len(made) <= 0.005 * before:
            break
    return made


def _merge_once(
    made: list[_Concept], tagged: Tagged, encoder: Embedder, config: CanonicaliseConfig,
    history: History,
) -> list[_Concept]:  # fmt: skip
    vectors_KD = encoder.embed([f"{each.card.name}. {each.card.description}" for each in made])
    k = min(config.n_neighbours + 1, len(made))
    found = nearest.search(vectors_KD, vectors_KD, k)
    near = [
        {int(other): float(cosine) for other, cosine in zip(rows, cosines, strict=True)}
        for rows, cosines in zip(found.rows_QK, found.cosine_QK, strict=True)
    ]
    graph = nx.Graph()
    graph.add_nodes_from(range(len(made)))
    for row, others in enumerate(near):
        for other, cosine in others.items():
            if other > row and row in near[other] and cosine >= config.merge_cosine:
                graph.add_edge(row, other, weight=cosine)
    communities = nx.community.louvain_communities(graph, resolution=1.0, seed=config.seed)
    groups = sorted(sorted(community) for community in communities)
    return [_union([made[row] for row in group], tagged, config, history) for group in groups]


def _union(
    group: Sequence[_Concept], tagged: Tagged, config: CanonicaliseConfig, history: History
) -> _Concept:
    """One concept of several, under the name of the one on most chunks."""
    if len(group) == 1:
        return group[0]
    first = max(group, key=lambda each: (len(each.cluster.chunks(tagged)), each.card.name))
    cluster = cluster_of([row for each in group for row in each.cluster.members], tagged)
    names = [each.card.name for each in group]
    history.tell(
        "merge", names, f"cards at least {config.merge_cosine} alike; now {first.card.name}"
    )
    members = _members(cluster, tagged)
    text = describe(first.card.name, members, config.naming.max_members_shown)
    return _Concept(cluster, Card(first.card.name, text))


def _without_common(
    made: Sequence[_Concept], tagged: Tagged, config: CanonicaliseConfig, history: History
) -> list[_Concept]:
    """Concepts that are not on nearly everything: those say too little and drown the others."""
    kept = []
    for each in made:
        share = len(each.cluster.chunks(tagged)) / tagged.n_chunks
        if share <= config.max_prevalence:
            kept.append(each)
        else:
            reason = f"on {share:.1%} of tagged chunks, above the cap {config.max_prevalence:.0%}"
            history.tell("drop", [each.card.name], reason)
    return kept


def _rows(made: Sequence[_Concept], tagged: Tagged, encoder: Embedder) -> list[dict[str, object]]:
    cards = [f"{each.card.name}. {each.card.description}" for each in made]
    parents = taxonomy.parents(cards, encoder)
    return [
        {
            "concept_id": concept_id, "name": each.card.name,
            "description": each.card.description, "kind": each.cluster.kind(tagged),
            "parent": parent, "taxonomy": f"{parent} / {each.card.name}",
            "prevalence": len(each.cluster.chunks(tagged)) / tagged.n_chunks,
            "n_chunks": len(each.cluster.chunks(tagged)),
            "coherence": each.cluster.coherence,
            "members": _members(each.cluster, tagged),
        }
        for concept_id, (each, parent) in enumerate(zip(made, parents, strict=True))
    ]  # fmt: skip


def _members(cluster: Cluster, tagged: Tagged) -> list[str]:
    return [tagged.texts[row] for row in cluster.members]
