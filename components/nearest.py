"""Nearest neighbours and clusters of unit vectors: the home of FAISS (paper §6.1.3, B.1).

Similarity is the inner product of unit vectors, the cosine, everywhere. All work runs on one
thread: the same vectors and the same seed then give the same bytes, whatever the machine does.

    kmeans     spherical clusters            atlas: tags -> concepts
    build      an index chosen by its size   index: chunks of the training split
    search     the nearest rows              attribution; `recall` compares with exact search

Large indexes are built in shards (`components/nearest_shards.py`).

Shape suffixes: N rows of a table   Q queries   K clusters or neighbours   D width of a vector
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

from components.nearest_rows import RefineRows

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]

_ROWS_AT_A_TIME = 65_536


def kmeans(
    vectors_ND: Floats, k: int, seed: int, n_iterations: int = 25, points_per_centroid: int = 64
) -> tuple[Floats, Integers]:
    """Unit centroids (K, D) of spherical k-means and the cluster of every row (N).

    Centroids are fitted to a seeded sample of `points_per_centroid` · k rows where there are more.
    """
    n = len(vectors_ND)
    if not 1 <= k <= n:
        raise ValueError(f"k is {k} but there are {n} vectors to cluster; choose k in 1..{n}")
    n_fitted = min(n, points_per_centroid * k)
    rows = np.random.default_rng(seed).choice(n, size=n_fitted, replace=False)
    fitted_ND = unit(vectors_ND if n_fitted == n else vectors_ND[np.sort(rows)])
    with one_thread():
        clustering = faiss.Kmeans(
            fitted_ND.shape[1],
            k,
            niter=n_iterations,
            seed=seed,
            spherical=True,
            min_points_per_centroid=1,
            max_points_per_centroid=points_per_centroid,
        )
        clustering.train(fitted_ND)
        centroids_KD = unit(np.asarray(clustering.centroids, dtype=np.float32))
        table, nearest_N = exact(centroids_KD), np.empty(n, dtype=np.int64)
        for start in range(0, n, _ROWS_AT_A_TIME):
            block = slice(start, start + _ROWS_AT_A_TIME)
            nearest_N[block] = table.search(unit(vectors_ND[block]), 1)[1][:, 0]
    return centroids_KD, nearest_N


def search(vectors_ND: Floats, queries_QD: Floats, k: int) -> "Neighbours":
    """The k most similar rows of every query, best first, by exact search."""
    return VectorIndex(exact(unit(vectors_ND)), "Flat").search(queries_QD, k)


def build(vectors_ND: Floats, exact_up_to: int, least_recall: float, seed: int) -> "VectorIndex":
    """An index of unit vectors: exact up to `exact_up_to` rows, inverted lists above.

    Lists probed by a query are doubled until `least_recall` of the ten true neighbours is found.
    """
    vectors_ND = unit(vectors_ND)
    n, width = vectors_ND.shape
    if n <= exact_up_to:
        return VectorIndex(exact(vectors_ND), "Flat")
    n_lists = max(1, min(round(4 * n**0.5), n // 39))
    with one_thread():
        lists = faiss.IndexIVFFlat(
            faiss.IndexFlatIP(width), width, n_lists, faiss.METRIC_INNER_PRODUCT
        )
        lists.cp.seed = seed
        lists.cp.min_points_per_centroid = 1
        lists.train(vectors_ND)
        lists.add(vectors_ND)
    index = VectorIndex(lists, f"IVF{n_lists},Flat")
    queries_QD = vectors_ND[np.random.default_rng(seed).choice(n, size=min(n, 256), replace=False)]
    true_rows_QK = search(vectors_ND, queries_QD, min(n, 10)).rows_QK
    while lists.nprobe < n_lists and (
        recall(index.search(queries_QD, min(n, 10)), true_rows_QK) < least_recall
    ):
        lists.nprobe = min(n_lists, 2 * lists.nprobe)
    return index


class CorruptIndexError(ValueError):
    """A file that FAISS cannot read as an index."""


def load(path: Path, kind: str) -> "VectorIndex":
    """An index written by `VectorIndex.save`; its settings of search travel in the file."""
    try:
        table = faiss.read_index(str(path))
    except RuntimeError as error:
        said = str(error).splitlines()[0][-200:]
        raise CorruptIndexError(
            f"{path} ({path.stat().st_size if path.exists() else 0} bytes) cannot be read as an "
            f"index: {said}. Build it again"
        ) from error
    return VectorIndex(table, kind)


@dataclass(frozen=True)
class Neighbours:
    """The nearest rows of each query, best first; row -1 where the index had too few."""

    cosine_QK: Floats
    rows_QK: Integers


@dataclass(frozen=True)
class VectorIndex:
    """A searchable table of unit vectors. `kind` is FAISS's own name for its layout."""

    table: faiss.Index
    kind: str
    rows: RefineRows | None = None
    """Rows that put what the codes propose in order; None where the table holds whole rows."""

    @property
    def n(self) -> int:
        return int(self.table.ntotal)

    @property
    def width(self) -> int:
        return int(self.table.d)

    def search(self, queries_QD: Floats, k: int) -> Neighbours:
        """The k most similar rows of every query, best first."""
        queries_QD = unit(queries_QD)
        if k < 1:
            raise ValueError(f"k is {k}; ask for at least one neighbour")
        if queries_QD.shape[1] != self.width:
            raise ValueError(
                f"queries are {queries_QD.shape[1]} wide but the index holds vectors of width "
                f"{self.width}; encode them with the encoder the index was built with"
            )
        broken_Q = ~np.isfinite(queries_QD).all(axis=1)
        if broken_Q.any():
            raise ValueError(
                f"query {int(broken_Q.argmax())} of {len(queries_QD)} holds NaN or infinity; look "
                f"at the weights of what made it"
            )
        n_found = k if self.rows is None else max(k, min(self.n, self.rows.n_candidates))
        with one_thread():
            cosine_QK, rows_QK = self.table.search(queries_QD, n_found)
        if self.rows is not None:
            cosine_QK, rows_QK = self.rows.best(queries_QD, rows_QK, k)
        return Neighbours(cosine_QK, rows_QK)

    def save(self, path: Path) -> None:
        faiss.write_index(self.table, str(path))


def recall(found: Neighbours, true_rows_QK: Integers) -> float:
    """Share of the true neighbours of all queries that were found."""
    hits = [
        len(set(got) & set(true))
        for got, true in zip(found.rows_QK.tolist(), true_rows_QK.tolist(), strict=True)
    ]
    return sum(hits) / true_rows_QK.size


def unit(vectors_ND: NDArray[np.floating]) -> Floats:
    """Rows scaled to length one, float32 and contiguous; a row of zeros stays zero."""
    vectors_ND = np.ascontiguousarray(vectors_ND, dtype=np.float32)
    if vectors_ND.ndim != 2:
        raise ValueError(f"vectors have shape {vectors_ND.shape}; give one row a vector")
    length_N1 = np.linalg.norm(vectors_ND, axis=1, keepdims=True)
    return vectors_ND / np.maximum(length_N1, np.finfo(np.float32).tiny)


def exact(vectors_ND: Floats) -> faiss.Index:
    """A table that compares every row."""
    table = faiss.IndexFlatIP(vectors_ND.shape[1])
    table.add(vectors_ND)
    return table


@contextmanager
def one_thread() -> Iterator[None]:
    """FAISS on one thread within the block; what it sums is then summed in one order."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
