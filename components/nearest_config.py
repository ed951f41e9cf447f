"""How an index is laid out, by the number of its vectors (paper §6.1.3, B.1).

    exact        Flat                                every row is compared
    lists        IVF1024,Flat                        rows of the lists nearest to the query
    compressed   OPQ64_512,IVF4096_HNSW32,PQ64       the same, 4 · width / `compression` bytes a row

Codes of 64 times fewer bytes put the true neighbours among the first hundreds, in a loose order:
exact cosines with the rows of the refine store put them first.
"""

import math
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from model.config import Config

_ROOT_UP_TO = 1_000_000
_LISTS = (
    (10_000_000, 65_536),
    (100_000_000, 262_144),
    (1_000_000_000, 1_048_576),
)
_MOST_LISTS = 4_194_304
_LEAST_PER_LIST = 39
"""Training rows a list needs at least, for FAISS and in fact."""

_DIMENSIONS_PER_CODE_BYTE = 8
"""Left by the rotation; it drops those that vary least."""


class LayoutConfig(Config):
    """Sizes at which the layout changes, and what a search must find."""

    exact_up_to: PositiveInt = 20_000
    """Vectors that are compared one by one; above, inverted lists limit the comparisons."""

    uncompressed_up_to: PositiveInt = 200_000
    """Vectors whose lists hold all dimensions; above, codes."""

    compression: PositiveInt = 64
    """Bytes of a float32 vector for each byte of its code."""

    graph_from_lists: PositiveInt = 16_384
    """Lists whose nearest are found by a graph (HNSW), not one by one."""

    train_rows_per_list: Annotated[int, Field(ge=_LEAST_PER_LIST, le=256)] = 64
    """Rows of the seeded sample that lists and codes are trained on, for each list."""

    rotations: PositiveInt = 10
    """Rounds in which the rotation before the codes is fitted."""

    refine: Literal["float16", "int8"] = "float16"
    """Rows beside the codes, memory-mapped: 2 bytes or 1 for each dimension."""

    n_candidates: PositiveInt = 1_000
    """Rows that codes propose; exact cosines order them."""

    least_recall: Annotated[float, Field(gt=0.0, le=1.0)] = 0.97
    """Share of the ten true neighbours that must be found: lists are probed until so, or all."""

    recall_queries: PositiveInt = 200
    """Vectors outside the index that are asked to measure the recall."""

    rows_per_shard: PositiveInt = 1_000_000
    """Rows that are encoded and written at a time, and again after a killed attempt."""

    seed: NonNegativeInt = 0


def layout(n: int, width: int, config: LayoutConfig) -> str:
    """FAISS's name for the layout of `n` vectors.

    "np": no polysemous training, which costs seconds a code byte and no search here uses.
    """
    if n < 1 or width < 1:
        raise ValueError(f"{n} vectors of width {width} cannot be indexed; give at least one row")
    if n <= config.exact_up_to:
        return "Flat"
    lists = n_lists(n)
    coarse = f"IVF{lists}" + ("_HNSW32" if lists >= config.graph_from_lists else "")
    if n <= config.uncompressed_up_to:
        return f"{coarse},Flat"
    m = max(1, 4 * width // config.compression)
    return f"OPQ{m}_{m * max(1, min(width // m, _DIMENSIONS_PER_CODE_BYTE))},{coarse},PQ{m}np"


def n_lists(n: int) -> int:
    """Inverted lists for so many vectors: a power of two near 4 √n, and more above a million."""
    if n <= _ROOT_UP_TO:
        wanted = 1 << round(math.log2(4 * n**0.5))
    else:
        wanted = next((lists for most, lists in _LISTS if n <= most), _MOST_LISTS)
    return max(1, min(wanted, n // _LEAST_PER_LIST))
