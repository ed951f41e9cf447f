"""Groups of tags that mean the same: k-means over the tags of a sample (paper §4, stage two).

The coherence of a group is the mean cosine of its members to its centroid, weighted by how many
chunks carry them; that of a clustering is the weighted mean over groups (method §1.3). A clustering
is one number a tag: merging and dropping groups renumber them, and everything else is measured
again from there.

The curve of coherence against k is taken on at most `sweep_tags` tags, with k in the same
proportion: coherence depends on how many tags share a centroid.

Shape suffixes: N tags   K groups   M places where a tag stands   D width of a vector
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from components import nearest
from components.atlas.library_config import CanonicaliseConfig
from components.atlas.tagged import KINDS, Integers, Tagged
from components.embedding import Floats

_ROWS_AT_A_TIME = 65_536

NONE = -1
"""Group of a tag that is in none."""


@dataclass(frozen=True)
class Groups:
    """Groups of tags, 0 … K − 1, and what they amount to."""

    group_N: Integers
    """Group of each tag, or NONE."""

    centroid_KD: Floats
    """Unit means of the members, weighted by their chunks."""

    coherence_K: Floats
    n_chunks_K: Integers
    """Chunks that carry any member."""

    weight_K: Floats
    """Places of all members: a chunk that carries two counts twice."""

    kind_K: NDArray[np.int8]
    """Index into KINDS: the kind of most places."""

    order_N: Integers
    """Tags by group, the commonest first; those in none before all."""

    start_K: Integers
    """(K + 1) where each group begins in `order_N`."""

    @property
    def n(self) -> int:
        return len(self.coherence_K)

    def members(self, group: int) -> Integers:
        """Rows of a group's tags, the commonest first, then by the alphabet."""
        return self.order_N[self.start_K[group] : self.start_K[group + 1]]

    def kind(self, group: int) -> str:
        return KINDS[int(self.kind_K[group])]


@dataclass(frozen=True)
class Sweep:
    """The groups at the knee of the coherence curve."""

    groups: Groups
    curve: dict[int, float]
    """Coherence by k."""

    n_tags: int
    """Tags that the curve was taken on."""


def sweep(tagged: Tagged, config: CanonicaliseConfig) -> Sweep:
    """Cluster at the knee of the curve; with one k to try there is nothing to choose."""
    ks = sorted({min(k, tagged.n) for k in config.sweep})
    if tagged.n <= config.sweep_tags:
        found = {k: _clustered(tagged, k, config) for k in ks}
        curve = {k: _overall(groups) for k, groups in found.items()}
        return Sweep(found[knee(curve)], curve, tagged.n)
    if len(ks) == 1:
        groups = _clustered(tagged, ks[0], config)
        return Sweep(groups, {ks[0]: _overall(groups)}, tagged.n)
    few = _drawn(tagged, config)
    curve = {k: _overall(_clustered(few, max(1, k * few.n // tagged.n), config)) for k in ks}
    return Sweep(_clustered(tagged, knee(curve), config), curve, few.n)


def knee(curve: Mapping[int, float]) -> int:
    """The k that stands highest over the line from the first point to the last."""
    ks = sorted(curve)
    if len(ks) < 3:
        return ks[-1]
    first, last = ks[0], ks[-1]
    slope = (curve[last] - curve[first]) / (last - first)
    return max(ks, key=lambda k: curve[k] - curve[first] - slope * (k - first))


def measure(tagged: Tagged, group_N: Integers) -> Groups:
    """What a grouping amounts to. Groups are renumbered so that none is empty."""
    held, group_N = np.unique(group_N, return_inverse=True)
    if held[0] == NONE:
        group_N, held = group_N - 1, held[1:]
    n = len(held)
    order_N = np.lexsort((np.arange(tagged.n), -tagged.weight_N, group_N))
    kept = group_N != NONE
    weight_N = np.where(kept, tagged.weight_N, 0).astype(np.float32)
    pooled = csr_matrix((weight_N[kept], (group_N[kept], np.flatnonzero(kept))), (n, tagged.n))
    centroid_KD = nearest.unit(pooled @ tagged.vectors_ND)
    mass_N = weight_N * _cosines(tagged, group_N, centroid_KD)
    weight_K = np.bincount(group_N[kept], weights=weight_N[kept], minlength=n)
    mass_K = np.bincount(group_N[kept], weights=mass_N[kept], minlength=n)
    kind_KC = np.bincount(
        group_N[kept] * len(KINDS) + tagged.kind_N[kept], weights=weight_N[kept],
        minlength=n * len(KINDS),
    ).reshape(n, len(KINDS))  # fmt: skip
    return Groups(
        group_N=group_N,
        centroid_KD=centroid_KD,
        coherence_K=(mass_K / weight_K).astype(np.float32),
        n_chunks_K=_support(tagged, group_N, n),
        weight_K=weight_K.astype(np.float32),
        kind_K=kind_KC.argmax(axis=1).astype(np.int8),
        order_N=order_N,
        start_K=np.searchsorted(group_N[order_N], np.arange(n + 1)).astype(np.int64),
    )


def _clustered(tagged: Tagged, k: int, config: CanonicaliseConfig) -> Groups:
    _, group_N = nearest.kmeans(
        tagged.vectors_ND, k, config.seed, config.n_iterations, config.points_per_centroid
    )
    return measure(tagged, group_N)


def _overall(groups: Groups) -> float:
    return float(np.average(groups.coherence_K, weights=groups.weight_K))


def _drawn(tagged: Tagged, config: CanonicaliseConfig) -> Tagged:
    """A seeded sample of the tags."""
    draw = np.random.default_rng(config.seed)
    rows = np.sort(draw.choice(tagged.n, size=config.sweep_tags, replace=False))
    counts_N = np.diff(tagged.offset_N)[rows]
    inside_M = np.repeat(np.isin(np.arange(tagged.n), rows), np.diff(tagged.offset_N))
    return Tagged(
        texts=[tagged.texts[row] for row in rows.tolist()],
        kind_N=tagged.kind_N[rows],
        offset_N=np.concatenate([[0], np.cumsum(counts_N)]).astype(np.int64),
        chunk_M=tagged.chunk_M[inside_M],
        n_chunks=tagged.n_chunks,
        vectors_ND=tagged.vectors_ND[rows],
    )


def _cosines(tagged: Tagged, group_N: Integers, centroid_KD: Floats) -> Floats:
    """Each tag with the centroid of its group; of no meaning for tags in none."""
    cosine_N = np.empty(tagged.n, dtype=np.float32)
    for start in range(0, tagged.n, _ROWS_AT_A_TIME):
        rows = slice(start, start + _ROWS_AT_A_TIME)
        cosine_N[rows] = np.einsum(
            "nd,nd->n", tagged.vectors_ND[rows], centroid_KD[group_N[rows]]
        )  # fmt: skip
    return cosine_N


def _support(tagged: Tagged, group_N: Integers, n: int) -> Integers:
    """Distinct chunks of each group."""
    group_M = np.repeat(group_N, np.diff(tagged.offset_N))
    inside_M = group_M != NONE
    pairs = np.unique(group_M[inside_M] * tagged.n_chunks + tagged.chunk_M[inside_M])
    return np.bincount(pairs // tagged.n_chunks, minlength=n).astype(np.int64)
