"""Groups of tags that mean the same: k-means over the tags of a sample (paper §4, stage two).

The coherence of a cluster is the mean cosine of its members to its centroid, weighted by how many
chunks carry them; that of a clustering is the weighted mean over clusters (method §1.3).

Shape suffixes: N tags   K clusters   D width of a vector
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from components import nearest
from components.embedding import Floats


@dataclass(frozen=True)
class Tagged:
    """Unique tags with their vectors, their kinds, and the chunks that carry them."""

    texts: tuple[str, ...]
    kinds: tuple[str, ...]
    chunks: tuple[frozenset[int], ...]
    vectors_ND: Floats
    n_chunks: int
    """Tagged chunks in all."""

    @property
    def weight_N(self) -> Floats:
        return np.asarray([len(chunks) for chunks in self.chunks], dtype=np.float32)


@dataclass(frozen=True)
class Cluster:
    """Members as rows of the tags, the commonest first."""

    members: tuple[int, ...]
    coherence: float

    def chunks(self, tagged: Tagged) -> frozenset[int]:
        """The chunks that carry any member."""
        return frozenset().union(*(tagged.chunks[row] for row in self.members))

    def centroid(self, tagged: Tagged) -> Floats:
        """Unit mean of the members, weighted by their chunks."""
        rows = list(self.members)
        return nearest.unit((tagged.weight_N[rows] @ tagged.vectors_ND[rows])[None])[0]

    def kind(self, tagged: Tagged) -> str:
        """The kind of most of its mentions."""
        mentions: dict[str, int] = {}
        for row in self.members:
            kind = tagged.kinds[row]
            mentions[kind] = mentions.get(kind, 0) + len(tagged.chunks[row])
        return max(sorted(mentions), key=lambda kind: mentions[kind])


def sweep(tagged: Tagged, ks: Sequence[int], seed: int) -> tuple[list[Cluster], dict[int, float]]:
    """The clusters at the knee of the coherence curve, and the curve: coherence by k."""
    possible = sorted({min(k, len(tagged.texts)) for k in ks})
    found = {k: _cluster(tagged, k, seed) for k in possible}
    curve = {k: _overall(clusters, tagged) for k, clusters in found.items()}
    return found[knee(curve)], curve


def knee(curve: Mapping[int, float]) -> int:
    """The k that stands highest over the line from the first point to the last."""
    ks = sorted(curve)
    if len(ks) < 3:
        return ks[-1]
    first, last = ks[0], ks[-1]
    slope = (curve[last] - curve[first]) / (last - first)
    return max(ks, key=lambda k: curve[k] - curve[first] - slope * (k - first))


def cluster_of(members: Sequence[int], tagged: Tagged) -> Cluster:
    """A cluster of these tags, with its coherence."""
    ordered = sorted(members, key=lambda row: (-len(tagged.chunks[row]), tagged.texts[row]))
    made = Cluster(tuple(ordered), coherence=0.0)
    cosine_N = tagged.vectors_ND[ordered] @ made.centroid(tagged)
    coherence = float(np.average(cosine_N, weights=tagged.weight_N[ordered]))
    return Cluster(tuple(ordered), coherence)


def _cluster(tagged: Tagged, k: int, seed: int) -> list[Cluster]:
    _, cluster_N = nearest.kmeans(tagged.vectors_ND, k, seed)
    groups: dict[int, list[int]] = {}
    for row, cluster in enumerate(_as_ints(cluster_N)):
        groups.setdefault(cluster, []).append(row)
    return [cluster_of(rows, tagged) for _, rows in sorted(groups.items())]


def _overall(clusters: Sequence[Cluster], tagged: Tagged) -> float:
    weights = [float(tagged.weight_N[list(cluster.members)].sum()) for cluster in clusters]
    return float(np.average([cluster.coherence for cluster in clusters], weights=weights))


def _as_ints(values: NDArray[np.int64]) -> list[int]:
    return [int(value) for value in values]
