"""Unit vectors as points of a plane, near ones near: the one home of UMAP (method §1.7).

    umap    neighbourhoods are kept, distances between far groups are not; seeded, one thread
    pca     the two directions of most variance; exact, instant, and blurs what they leave out

Neighbours are found by `components/nearest.py` and the layout starts from the two directions, so
that nothing of UMAP is compiled but its optimiser: 8 s of CPU for the first map of a process
instead of 12, nearly all of it compilation. The first on a machine takes 23 s; what it compiles at
import, numba keeps.

Shape suffixes: N vectors   D width of a vector   k neighbours   2 directions of the plane
"""

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np

from components import nearest
from components.nearest import Floats

Method = Literal["umap", "pca"]

_N_NEIGHBOURS = 15
_LEAST_FOR_UMAP = 8
"""With fewer vectors all are neighbours of all, and there is nothing to unfold."""


@dataclass(frozen=True)
class Projection:
    """Points in [0, 1] × [0, 1], the method that placed them, and how well neighbours survived."""

    points_N2: Floats
    method: Method
    n_neighbours: int
    kept: float
    """Share of each vector's nearest neighbours that are among its nearest in the plane."""


def project(vectors_ND: Floats, method: Method, seed: int) -> Projection:
    """Place vectors in a plane. Fewer than 8 different ones are placed by `pca`, as the result
    says."""
    vectors_ND = nearest.unit(vectors_ND)
    n = len(vectors_ND)
    if len(np.unique(vectors_ND, axis=0)) < _LEAST_FOR_UMAP:
        method = "pca"
    k = min(_N_NEIGHBOURS, max(1, n - 1))
    found = nearest.search(vectors_ND, vectors_ND, k)
    points_N2 = _directions(vectors_ND)
    if method == "umap":
        points_N2 = _unfolded(vectors_ND, found, points_N2, seed)
    kept = _kept(found.rows_QK, points_N2)
    return Projection(_within_the_unit_square(points_N2), method, k - 1, kept)


def _directions(vectors_ND: Floats) -> Floats:
    """Coordinates along the two directions of most variance, each signed so that the largest
    coordinate is positive."""
    centred_ND = (vectors_ND - vectors_ND.mean(axis=0)).astype(np.float64)
    left_NN, size_N, _ = np.linalg.svd(centred_ND, full_matrices=False)
    points_N2 = np.zeros((len(vectors_ND), 2))
    n_found = min(2, len(size_N))
    points_N2[:, :n_found] = left_NN[:, :n_found] * size_N[:n_found]
    largest_2 = np.take_along_axis(points_N2, np.abs(points_N2).argmax(axis=0)[None], axis=0)
    return np.asarray(points_N2 * np.where(largest_2 < 0, -1.0, 1.0), dtype=np.float32)


def _unfolded(vectors_ND: Floats, found: nearest.Neighbours, start_N2: Floats, seed: int) -> Floats:
    """UMAP from given neighbours and a given start."""
    distance_Nk = np.maximum(0.0, 1.0 - found.cosine_QK).astype(np.float32)
    start_N2 = 10.0 * _within_the_unit_square(start_N2)
    with warnings.catch_warnings():
        # umap tells at import that its neural variant, which is not used here, lacks TensorFlow.
        warnings.filterwarnings("ignore", "Tensorflow not installed", ImportWarning)
        import umap

        # And that given neighbours cannot place vectors that come later: there are none.
        warnings.filterwarnings("ignore", r"precomputed_knn\[2\]", UserWarning)
        layout = umap.UMAP(
            n_neighbors=found.rows_QK.shape[1],
            metric="cosine",
            precomputed_knn=(found.rows_QK.astype(np.int32), distance_Nk),
            init=start_N2,
            random_state=seed,
            n_jobs=1,
        )
        return np.asarray(layout.fit_transform(vectors_ND), dtype=np.float32)


def _within_the_unit_square(points_N2: Floats) -> Floats:
    """Shifted and scaled, each direction by itself; a direction without extent is in the middle."""
    low_2, high_2 = points_N2.min(axis=0), points_N2.max(axis=0)
    extent_2 = high_2 - low_2
    scaled_N2 = (points_N2 - low_2) / np.where(extent_2 > 0, extent_2, 1.0)
    return np.asarray(np.where(extent_2 > 0, scaled_N2, 0.5), dtype=np.float32)


def _kept(rows_Nk: nearest.Integers, points_N2: Floats) -> float:
    """Share of neighbours, the vector itself aside, that are neighbours in the plane too."""
    n, k = rows_Nk.shape
    if k < 2:
        return 1.0
    hits = 0
    for row in range(n):
        distance_N = np.square(points_N2 - points_N2[row]).sum(axis=1)
        distance_N[row] = -1.0
        near = set(np.argsort(distance_N, kind="stable")[:k].tolist()) - {row}
        hits += len(near & set(rows_Nk[row].tolist()))
    return hits / (n * (k - 1))
