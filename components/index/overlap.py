"""Chunks by the tokens they share: what retrieval by states is compared with (BM25).

    Σ over the query's tokens   idf · count (k + 1) / (count + k (1 − b + b · length / mean length))

Shape suffixes: R row of the index   Q query   V vocabulary   K row found
"""

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from components.order import Integers

_K, _B = 1.2, 0.75


def by_overlap(
    row_ids: Sequence[Integers], query_ids: Sequence[Integers], vocab_size: int, k: int
) -> Integers:
    """The k rows (Q, K) that share most with each query; rows that share nothing come last."""
    weights_RV = _weights(_counts(row_ids, vocab_size))
    score_QR = (_counts(query_ids, vocab_size) @ weights_RV.T).toarray()
    return np.argsort(-score_QR, axis=1, kind="stable")[:, :k]


def _weights(counts_RV: sparse.csr_array) -> sparse.csr_array:
    n_rows = counts_RV.shape[0]
    rows_with_V = np.bincount(counts_RV.indices, minlength=counts_RV.shape[1])
    idf_V = np.log1p((n_rows - rows_with_V + 0.5) / (rows_with_V + 0.5))
    length_R = np.asarray(counts_RV.sum(axis=1))
    slack_R = _K * (1 - _B + _B * length_R / max(length_R.mean(), 1.0))
    weights_RV = counts_RV.copy()
    slack = np.repeat(slack_R, np.diff(counts_RV.indptr))
    weights_RV.data = (
        idf_V[counts_RV.indices] * counts_RV.data * (_K + 1) / (counts_RV.data + slack)
    )
    return weights_RV


def _counts(texts: Sequence[Integers], vocab_size: int) -> sparse.csr_array:
    ends = np.cumsum([0, *(len(ids) for ids in texts)])
    ids = np.concatenate([np.empty(0, dtype=np.int64), *texts])
    counts = sparse.csr_array((np.ones(len(ids)), ids, ends), shape=(len(texts), vocab_size))
    counts.sum_duplicates()
    return counts
