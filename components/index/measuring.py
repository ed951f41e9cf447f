"""Shares with intervals: of chunks that a search found, by document.

Shape suffixes: N chunk   K row found   G document
"""

from dataclasses import asdict, replace

import numpy as np
from numpy.typing import NDArray

from components.index.config import BuildConfig
from components.index_facts import Measured, Recall
from components.order import Integers
from model import intervals

RECALL_AT = (1, 10, 100)
DEEPEST = max(RECALL_AT)


def mean(
    values_N: NDArray[np.float64], doc_id_N: NDArray[np.str_], config: BuildConfig
) -> Measured:
    """Mean with its interval, which no value lies beyond; documents are drawn whole.

    Of shares that are all 0 or all 1 the interval is the binomial's, each document one case.
    """
    documents, group_N = np.unique(doc_id_N, return_inverse=True)
    sum_G = intervals.by_group(values_N, group_N, len(documents))
    count_G = intervals.by_group(np.ones_like(values_N), group_N, len(documents))
    found = intervals.ratio_interval(sum_G, count_G, draws=config.bootstrap_draws, seed=config.seed)
    least, most = float(values_N.min()), float(values_N.max())
    low, high = np.clip([found.low, found.high], least, most).tolist()
    if least == most and most in (0.0, 1.0):
        low, high = intervals.all_alike(all_right=most == 1.0, n=found.n_groups)
    return Measured(**asdict(replace(found, low=low, high=high)), n=len(values_N))


def recall_of_own(
    found_NK: Integers, own_N: Integers, doc_id_N: NDArray[np.str_], n_rows: int,
    config: BuildConfig,
) -> Recall:  # fmt: skip
    """Share of chunks whose own row is among the first 1, 10 and 100 rows found."""
    hit_NK = found_NK == own_N[:, None]
    at_1, at_10, at_100 = (
        mean(hit_NK[:, :k].any(axis=1).astype(np.float64), doc_id_N, config) for k in RECALL_AT
    )
    return Recall(at_1=at_1, at_10=at_10, at_100=at_100, chance_at_1=1 / n_rows)


def recall_of_true(
    found_NK: Integers, true_NK: Integers, doc_id_N: NDArray[np.str_], n_rows: int,
    config: BuildConfig,
) -> Recall:  # fmt: skip
    """Share of the 1, 10 and 100 true neighbours that are among as many rows found."""
    at_1, at_10, at_100 = (
        mean(_shared(found_NK[:, :k], true_NK[:, :k]), doc_id_N, config) for k in RECALL_AT
    )
    return Recall(at_1=at_1, at_10=at_10, at_100=at_100, chance_at_1=1 / n_rows)


def _shared(found_NK: Integers, true_NK: Integers) -> NDArray[np.float64]:
    pairs = zip(found_NK.tolist(), true_NK.tolist(), strict=True)
    return np.array([len(set(found) & set(true)) / len(true) for found, true in pairs])
