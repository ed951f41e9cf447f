"""Whole rows beside compressed codes: they order what the codes propose (paper B.1).

    float16   2 bytes a dimension
    int8      1 byte: a row's largest value becomes 127; its direction is what counts

Memory-mapped: a query reads the rows proposed to it, no others.

Shape suffixes: N rows   Q queries   C candidates   K neighbours   D width
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
Precision = Literal["float16", "int8"]


@dataclass(frozen=True)
class RefineRows:
    """Rows of an index, and how many of them a search looks at."""

    stored_ND: NDArray[np.float16] | NDArray[np.int8]
    n_candidates: int

    def best(self, queries_QD: Floats, rows_QC: Integers, k: int) -> tuple[Floats, Integers]:
        """Cosines (Q, K) and rows (Q, K) of the best candidates; row -1 where there are too few."""
        cosine_QK = np.full((len(queries_QD), k), -np.inf, dtype=np.float32)
        rows_QK = np.full((len(queries_QD), k), -1, dtype=np.int64)
        for query, (query_D, rows_C) in enumerate(zip(queries_QD, rows_QC, strict=True)):
            found_C = np.sort(rows_C[rows_C >= 0])
            row_CD = self.stored_ND[found_C].astype(np.float32)
            length_C = np.maximum(np.linalg.norm(row_CD, axis=1), np.finfo(np.float32).tiny)
            cosine_C = (row_CD @ query_D) / length_C
            first = np.argsort(-cosine_C, kind="stable")[:k]
            cosine_QK[query, : len(first)] = cosine_C[first]
            rows_QK[query, : len(first)] = found_C[first]
        return cosine_QK, rows_QK


def encoded(vectors_ND: Floats, precision: Precision) -> NDArray[np.float16] | NDArray[np.int8]:
    """Unit vectors as they are stored."""
    if precision == "float16":
        return vectors_ND.astype(np.float16)
    largest_N1 = np.maximum(np.abs(vectors_ND).max(axis=1, keepdims=True), 1e-12)
    return np.rint(vectors_ND / largest_N1 * 127).astype(np.int8)


def open_rows(path: Path, n_candidates: int) -> RefineRows:
    """Rows written by `write`, memory-mapped."""
    return RefineRows(np.load(path, mmap_mode="r"), n_candidates)
