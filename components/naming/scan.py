"""Where unknown concepts are active, and what they contribute to logits (method §6.3).

The network is asked for masked tokens of training text, half of them at a time, as in generation
(the AR families for the next token). A chunk's activation is the mean over its asked tokens.

Shape suffixes: B batch   T position   N asked token   k concept kept   C chunk   U unknown concept
    D width
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from components.naming.config import NameConfig
from components.order import Integers, permuted
from components.tokens import TokenStream
from model.diffusion import fixed, question
from model.events import Event, Events
from model.language_model import LanguageModel

_SPLIT, _RATE = "train", 0.5


@dataclass(frozen=True)
class Scan:
    """What reading some training text showed."""

    chunk_id_C: Integers
    doc_id_C: NDArray[np.str_]
    activation_CU: sparse.csc_matrix
    """Mean over the chunk's asked tokens; concepts outside the top-k count as nothing."""

    contribution_U: NDArray[np.float64]
    """Σ |u_j (U_j·W_y)| over asked tokens, in logits."""

    n_tokens: int
    n_asked: int


@torch.no_grad()
def scan(lm: LanguageModel, stream: TokenStream, config: NameConfig, events: Events) -> Scan:
    """Read up to `scan_tokens` of the training split, windows in a shuffled order."""
    n_unknown = lm.concepts.config.n_unknown
    contribution_U = torch.zeros(n_unknown, dtype=torch.float64)
    parts, asked_parts, n_tokens, n_asked = [], [], 0, 0
    batches = list(_windows(stream, config))
    for step, indices in enumerate(batches, start=1):
        batch = stream.batch(_SPLIT, config.length, indices)
        asked = question(batch, fixed(_RATE), config.seed, 0, lm.config)
        state_ND = lm.hidden(asked.noisy_BT)[asked.masked_BT]
        top = lm.concepts.unknown.top(state_ND)
        row_ND = lm.head_VD[asked.target_BT[asked.masked_BT]]
        size_Nk = lm.concepts.unknown.contributions(top, row_ND).abs().double()
        contribution_U.index_add_(0, top.ids.flatten(), size_Nk.flatten())
        spans_C = stream.origins(_SPLIT, config.length, indices).span_C
        span_N = _spans(asked.masked_BT, batch.chunk_BT, spans_C)
        parts.append(_summed(span_N, top.ids.numpy(), top.activations.numpy(), n_unknown, stream))
        asked_parts.append(np.bincount(span_N[span_N >= 0], minlength=len(stream.spans)))
        n_tokens += batch.ids_BT.numel()
        n_asked += len(state_ND)
        events(Event(step, len(batches), {"tokens": float(n_tokens)}))
    asked_S = np.sum(asked_parts, axis=0)
    rows_C = np.flatnonzero(asked_S)
    total = sum(parts[1:], parts[0])
    mean_CU = sparse.diags(1 / asked_S[rows_C]) @ total[rows_C]
    return Scan(
        stream.spans.chunk_id[rows_C],
        np.array(stream.spans.doc_id, dtype=np.str_)[rows_C],
        sparse.csc_matrix(mean_CU),
        contribution_U.numpy(),
        n_tokens,
        n_asked,
    )


def _windows(stream: TokenStream, config: NameConfig) -> Iterator[Integers]:
    n_windows = stream.n_windows(_SPLIT, config.length)
    wanted = min(n_windows, max(1, config.scan_tokens // config.length))
    windows = permuted(np.arange(n_windows), n_windows, config.seed, epoch=0)[:wanted]
    for start in range(0, wanted, config.batch_sequences):
        yield windows[start : start + config.batch_sequences]


def _spans(masked_BT: Tensor, chunk_BT: Tensor, spans_C: Integers) -> Integers:
    """The span each asked token lies in; −1 where it is no chunk's."""
    local_N = chunk_BT[masked_BT].numpy()
    return np.append(spans_C, -1)[local_N]


def _summed(
    span_N: Integers, ids_Nk: Integers, active_Nk: NDArray[np.float32], n_unknown: int,
    stream: TokenStream,
) -> sparse.csr_matrix:  # fmt: skip
    inside_N = span_N >= 0
    rows = np.repeat(span_N[inside_N], ids_Nk.shape[1])
    values = active_Nk[inside_N].ravel(), (rows, ids_Nk[inside_N].ravel())
    return sparse.csr_matrix(values, shape=(len(stream.spans), n_unknown), dtype=np.float64)
