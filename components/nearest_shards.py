"""Large indexes: trained once, encoded in shards, merged on disk, searched mapped (paper B.1).

    train    lists, rotation and codes, on a seeded sample      trained.faiss
    shard    a stretch of rows, by itself                        00003.faiss, 00003.npy (whole rows)
    merge    the lists of all shards, one after the other        index.faiss, lists.bin, rows.npy

A shard depends on the trained index and on its rows alone: any number of workers, in any order or
after a kill, leave the same bytes. Rows that come later are one more shard: nothing is trained
again, and merging copies bytes.

Shape suffixes: N rows   Q queries   K neighbours   D width
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

from components import nearest, nearest_rows
from components import nearest_lists as lists
from components.nearest import Floats, Integers, Neighbours, VectorIndex
from components.nearest_config import LayoutConfig, layout
from components.nearest_lists import ROWS_FILE, TABLE_FILE

_TRAINED_FILE = "trained.faiss"
_ROWS_AT_A_TIME = 65_536
_BLAS_FROM_ROWS = 20
"""FAISS compares by matrix products from so many rows on. Its own threshold of 128,000 makes the
training of codes ten times slower."""


@dataclass(frozen=True)
class Vectors:
    """Vectors to index, read and scaled to length one some rows at a time."""

    stored_ND: NDArray[np.floating]
    """Often memory-mapped."""

    chosen_N: Integers
    """Its rows that are indexed, in this order."""

    def __len__(self) -> int:
        return len(self.chosen_N)

    @property
    def width(self) -> int:
        return int(self.stored_ND.shape[1])

    def rows(self, start: int, end: int) -> Floats:
        """Unit vectors of rows start … end − 1."""
        return nearest.unit(self.stored_ND[self.chosen_N[start:end]])

    def sample(self, n: int, seed: int) -> Floats:
        """Unit vectors of `n` seeded rows, or of all."""
        if n >= len(self):
            return self.rows(0, len(self))
        rows_N = np.sort(np.random.default_rng(seed).choice(len(self), size=n, replace=False))
        return nearest.unit(self.stored_ND[self.chosen_N[rows_N]])


def build(
    vectors: Vectors, queries_QD: Floats, folder: Path, shards: Path, config: LayoutConfig,
    n_workers: int = 1,
) -> VectorIndex:  # fmt: skip
    """Write an index into `folder` and open it. What is finished in `shards` is not done again.

    Lists probed by a search are doubled until `least_recall` of the ten true neighbours of the
    queries, which should be no rows of the index, is found.
    """
    kind = layout(len(vectors), vectors.width, config)
    shards.mkdir(parents=True, exist_ok=True)
    train(vectors, kind, shards, config)
    n_shards = -(-len(vectors) // config.rows_per_shard)
    # The threshold is FAISS's for all threads: no shard may change it while another works.
    with _matrix_products(), ThreadPoolExecutor(n_workers) as workers:
        work = [
            workers.submit(shard, vectors, number, shards, config) for number in range(n_shards)
        ]
        parts = [one.result() for one in work]
    index = merge(parts, folder, kind, config)
    return tuned(index, vectors, queries_QD, folder, config)


def add(
    index: Path, vectors: Vectors, folder: Path, shards: Path, kind: str, config: LayoutConfig
) -> VectorIndex:
    """Write into `folder` the index of the folder `index` with more rows; nothing is trained."""
    shards.mkdir(parents=True, exist_ok=True)
    old = lists.open_part(index / TABLE_FILE)
    n_before = int(old.ntotal)
    lists.write(lists.emptied(old), shards / _TRAINED_FILE)
    n_shards = -(-len(vectors) // config.rows_per_shard)
    parts = [
        shard(vectors, number, shards, config, first_row=n_before) for number in range(n_shards)
    ]
    return merge([index / TABLE_FILE, *parts], folder, kind, config)


def train(vectors: Vectors, kind: str, shards: Path, config: LayoutConfig) -> Path:
    """An empty index of this layout, trained on a seeded sample."""
    path = shards / _TRAINED_FILE
    if path.is_file():
        return path
    with nearest.one_thread(), _matrix_products():
        table = faiss.index_factory(vectors.width, kind, faiss.METRIC_INNER_PRODUCT)
        coarse = faiss.try_extract_index_ivf(table)
        if coarse is not None:
            coarse.cp.seed = config.seed
            coarse.cp.min_points_per_centroid = 1
            if isinstance(table, faiss.IndexPreTransform):
                first = table.chain.at(0)  # type: ignore[attr-defined]  # a vector of C++
                rotation = faiss.downcast_VectorTransform(first)
                assert isinstance(rotation, faiss.OPQMatrix)
                rotation.niter = config.rotations
            table.train(vectors.sample(config.train_rows_per_list * coarse.nlist, config.seed))
    return lists.write(table, path)


def shard(
    vectors: Vectors, number: int, shards: Path, config: LayoutConfig, *, first_row: int = 0
) -> Path:
    """Encode a stretch of rows. Returns its file, which is there whole or not at all.

    `first_row` is what the first of all vectors is called in the index.
    """
    path = shards / f"{number:05d}.faiss"
    if path.is_file():
        return path
    start = number * config.rows_per_shard
    end = min(start + config.rows_per_shard, len(vectors))
    with nearest.one_thread(), _matrix_products():
        table = faiss.read_index(str(shards / _TRAINED_FILE))
        kept = _kept(path.with_suffix(".npy.partial"), end - start, table, config)
        for first in range(start, end, _ROWS_AT_A_TIME):
            row_ND = vectors.rows(first, min(first + _ROWS_AT_A_TIME, end))
            if isinstance(table, faiss.IndexFlat):  # its rows have no other name than their place
                table.add(row_ND)
            else:
                names_N = np.arange(first, first + len(row_ND), dtype=np.int64) + first_row
                table.add_with_ids(row_ND, names_N)
            if kept is not None:
                stored_ND = nearest_rows.encoded(row_ND, config.refine)
                kept[first - start : first - start + len(row_ND)] = stored_ND
    if kept is not None:
        kept.flush()
        path.with_suffix(".npy.partial").rename(path.with_suffix(".npy"))
    return lists.write(table, path)


def merge(parts: Sequence[Path], folder: Path, kind: str, config: LayoutConfig) -> VectorIndex:
    """One index of several of the same training; rows keep their numbers, which go on."""
    tables = [lists.open_part(part) for part in parts]
    empty = lists.emptied(lists.open_part(parts[0]))
    with nearest.one_thread():
        if isinstance(empty, faiss.IndexFlat):
            for table in tables:
                empty.merge_from(table)
        else:
            lists.merge_lists(tables, folder)
    lists.write(empty, folder / TABLE_FILE)
    rows = [path for path in map(_rows_beside, parts) if path.is_file()]
    if rows:
        _merge_rows(rows, folder / ROWS_FILE)
    return lists.open_index(folder, kind, config.n_candidates)


def tuned(
    index: VectorIndex, vectors: Vectors, queries_QD: Floats, folder: Path, config: LayoutConfig
) -> VectorIndex:
    """The index with as many lists probed as the recall needs; the number goes into its file."""
    coarse = faiss.try_extract_index_ivf(index.table)
    if coarse is None:
        return index
    deepest = min(10, index.n)
    true_rows_QK = exact_neighbours(vectors, queries_QD, deepest).rows_QK
    while coarse.nprobe < coarse.nlist:
        found = index.search(queries_QD, deepest)
        if nearest.recall(found, true_rows_QK) >= config.least_recall:
            break
        coarse.nprobe = min(coarse.nlist, 2 * coarse.nprobe)
    table = nearest.load(folder / TABLE_FILE, index.kind).table
    faiss.extract_index_ivf(table).nprobe = coarse.nprobe
    lists.write(table, folder / TABLE_FILE)
    return index


def exact_neighbours(vectors: Vectors, queries_QD: Floats, k: int) -> Neighbours:
    """The true neighbours among all vectors, compared some rows at a time."""
    queries_QD = nearest.unit(queries_QD)
    cosine_QK = np.empty((len(queries_QD), 0), dtype=np.float32)
    rows_QK = np.empty((len(queries_QD), 0), dtype=np.int64)
    for start in range(0, len(vectors), _ROWS_AT_A_TIME):
        row_ND = vectors.rows(start, min(start + _ROWS_AT_A_TIME, len(vectors)))
        found = nearest.search(row_ND, queries_QD, min(k, len(row_ND)))
        cosine_QK = np.concatenate([cosine_QK, found.cosine_QK], axis=1)
        rows_QK = np.concatenate([rows_QK, found.rows_QK + start], axis=1)
        first_QK = np.argsort(-cosine_QK, axis=1, kind="stable")[:, :k]
        cosine_QK = np.take_along_axis(cosine_QK, first_QK, axis=1)
        rows_QK = np.take_along_axis(rows_QK, first_QK, axis=1)
    return Neighbours(cosine_QK, rows_QK)


def _kept(
    path: Path, n: int, table: faiss.Index, config: LayoutConfig
) -> np.memmap[tuple[int, ...], np.dtype[np.float16]] | None:
    """Room for the whole rows of a shard, where its lists hold codes alone."""
    coarse = faiss.try_extract_index_ivf(table)
    if coarse is None or not isinstance(faiss.downcast_index(coarse), faiss.IndexIVFPQ):
        return None
    shape = (n, table.d)
    return np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(config.refine), shape=shape)


def _rows_beside(part: Path) -> Path:
    return part.parent / ROWS_FILE if part.name == TABLE_FILE else part.with_suffix(".npy")


def _merge_rows(parts: Sequence[Path], path: Path) -> None:
    stored = [np.load(part, mmap_mode="r") for part in parts]
    shape = (sum(map(len, stored)), stored[0].shape[1])
    merged = np.lib.format.open_memmap(path, mode="w+", dtype=stored[0].dtype, shape=shape)
    start = 0
    for rows_ND in stored:
        merged[start : start + len(rows_ND)] = rows_ND
        start += len(rows_ND)
    merged.flush()


@contextmanager
def _matrix_products() -> Iterator[None]:
    before = faiss.cvar.distance_compute_blas_threshold
    faiss.cvar.distance_compute_blas_threshold = _BLAS_FROM_ROWS
    try:
        yield
    finally:
        faiss.cvar.distance_compute_blas_threshold = before
