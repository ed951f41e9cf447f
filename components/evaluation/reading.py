"""One pass of the network over held-out text, added up by document, sequence and chunk.

Tokens are asked for as the family is trained: half of them masked (cdlm), or each from those
before it (ar). Sums are kept, never single tokens, so the text may be as long as one likes.

Shape suffixes used in this file:
    B batch   T position   N row (a token that is asked for)   C chunk of a batch   G document
    S held-out chunk   K known concept   V vocabulary   M rows of one sequence
"""

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from components.evaluation.config import EvaluateConfig
from components.evaluation.held_out import HeldOut, Window
from components.tokens import TokenStream
from model.diffusion import Corrupted, fixed, question
from model.estimators import FIXED_RATE
from model.forcing import pooled_labels, supervised
from model.intervals import by_group
from model.language_model import LanguageModel
from model.likelihood import target_nats
from model.metrics import (
    Agreement,
    Dependence,
    Readout,
    add_absence,
    agreement,
    dependence,
    read_targets,
)

Floats = NDArray[np.float64]

COMPARED_AT_ONCE = 32
"""Tokens of one batch whose foretold and seen changes are compared, so that many batches are."""


class Ledger:
    """Sums by document, under names."""

    def __init__(self, n_documents: int) -> None:
        self._n_documents = n_documents
        self._sums: dict[str, Floats] = defaultdict(lambda: np.zeros(n_documents))

    def add(self, name: str, value_N: Tensor, document_N: NDArray[np.int64]) -> None:
        """Add rows to their documents."""
        self._sums[name] += by_group(value_N.double().numpy(), document_N, self._n_documents)

    def __getitem__(self, name: str) -> Floats:
        return self._sums[name]


@dataclass
class Reading:
    """Everything one pass found."""

    ledger: Ledger
    absence_SK: Tensor
    """−log P(concept absent) of each held-out chunk, over its asked tokens."""

    asked_S: Tensor
    """Asked tokens of each held-out chunk."""

    dependence: list[Dependence] = field(default_factory=list)
    """One entry a sequence."""

    agreement: list[Agreement] = field(default_factory=list)
    largest_logit_error: float = 0.0
    n_tokens: int = 0


@dataclass(frozen=True)
class _Rows:
    """The asked tokens of one window, one below the other."""

    hidden_ND: Tensor
    target_N: Tensor
    document_N: NDArray[np.int64]
    chunk_N: Tensor
    sequence_N: Tensor


@torch.no_grad()
def read(
    lm: LanguageModel, held_out: HeldOut, config: EvaluateConfig, unigram_nats_V: Tensor
) -> Reading:
    """Ask for held-out tokens once, taking each state apart where there are concepts."""
    n_known = 0 if lm.config.bottleneck is None else lm.config.bottleneck.n_known
    n_chunks = len(held_out.span_rows)
    reading = Reading(
        ledger=Ledger(len(held_out.documents)),
        absence_SK=torch.zeros(n_chunks, n_known),
        asked_S=torch.zeros(n_chunks),
    )
    for window in held_out.windows(config.batch_sequences, config.max_tokens):
        asked = question(window.batch, fixed(FIXED_RATE), config.seed, 0, lm.config)
        rows = _rows(lm, window, asked)
        reading.n_tokens += len(rows.target_N)
        reading.ledger.add("tokens", torch.ones(len(rows.target_N)), rows.document_N)
        reading.ledger.add("unigram", unigram_nats_V[rows.target_N], rows.document_N)
        if n_known:
            _read_parts(lm, window, rows, reading, config)
        else:
            nll_N = target_nats(lm, rows.hidden_ND, rows.target_N)
            reading.ledger.add("nll", nll_N, rows.document_N)
    return reading


@torch.no_grad()
def read_clean(lm: LanguageModel, held_out: HeldOut, config: EvaluateConfig) -> Tensor:
    """−log P(concept absent) of each chunk (S, K), read whole and with nothing masked."""
    absence_SK = torch.zeros(len(held_out.span_rows), lm.concepts.config.n_known)
    for window in held_out.windows(config.batch_sequences, config.max_tokens):
        pooled_BT = window.batch.chunk_BT >= 0
        hidden_ND = lm.hidden(window.batch.ids_BT)[pooled_BT]
        row_C = torch.from_numpy(window.chunk_row_C)
        logits_NK = lm.concepts.known.logits(hidden_ND)
        add_absence(absence_SK, logits_NK, row_C[window.batch.chunk_BT[pooled_BT]])
    return absence_SK


def unigram_nats(stream: TokenStream, config: EvaluateConfig) -> Tensor:
    """−log of each token's share of the training text (V), with half a token added to each."""
    n_windows = stream.n_windows("train", config.length)
    n_wanted = max(1, min(n_windows, config.unigram_tokens // config.length))
    chosen = np.linspace(0, n_windows - 1, n_wanted).round().astype(np.int64)
    count_V = np.zeros(stream.vocab_size)
    for start in range(0, n_wanted, 256):
        batch = stream.batch("train", config.length, chosen[start : start + 256])
        count_V += np.bincount(batch.ids_BT.numpy().ravel(), minlength=stream.vocab_size)
    count_V[[stream.specials.bos_id, stream.specials.pad_id]] = 0
    share_V = (count_V + 0.5) / (count_V + 0.5).sum()
    return torch.from_numpy(-np.log(share_V))


def _rows(lm: LanguageModel, window: Window, asked: Corrupted) -> _Rows:
    sequence_N, position_N = asked.masked_BT.nonzero(as_tuple=True)
    hidden_BTD = lm.hidden(asked.noisy_BT)
    document_BT = torch.from_numpy(window.document_BT)
    if lm.config.backbone.attention == "causal":  # the target, and so its document, is the next
        document_BT = document_BT.roll(-1, dims=1)
    return _Rows(
        hidden_ND=hidden_BTD[sequence_N, position_N],
        target_N=asked.target_BT[sequence_N, position_N],
        document_N=document_BT[sequence_N, position_N].numpy(),
        chunk_N=window.batch.chunk_BT[sequence_N, position_N],
        sequence_N=sequence_N,
    )


def _read_parts(
    lm: LanguageModel, window: Window, rows: _Rows, reading: Reading, config: EvaluateConfig
) -> None:
    batch, known = window.batch, lm.concepts.known
    pooled_N = rows.chunk_N >= 0
    row_N = torch.from_numpy(window.chunk_row_C)[rows.chunk_N[pooled_N]]
    add_absence(reading.absence_SK, known.logits(rows.hidden_ND[pooled_N]), row_N)
    reading.asked_S.index_add_(0, row_N, torch.ones(len(row_N)))

    truth_CD = pooled_labels(known.embedding_KD, batch.concepts_CM)
    taught_C = supervised(batch)
    taught_N = pooled_N.clone()
    taught_N[pooled_N] = taught_C[rows.chunk_N[pooled_N]]
    truth_ND = torch.zeros_like(rows.hidden_ND)
    truth_ND[taught_N] = truth_CD[rows.chunk_N[taught_N]]
    readout = read_targets(lm, rows.hidden_ND, truth_ND, rows.target_N)
    _enter(reading.ledger, readout, rows.document_N, taught_N)
    error = float(readout.logit_error_N.max())
    reading.largest_logit_error = max(reading.largest_logit_error, error)

    parts = lm.concepts(rows.hidden_ND)
    for sequence in range(len(batch)):
        inside_N = rows.sequence_N == sequence
        if int(inside_N.sum()) > 1:
            both = parts.known_BTD[inside_N], parts.unknown_BTD[inside_N]
            reading.dependence.append(dependence(*both))
    n_compared = sum(len(one.observed_N) for one in reading.agreement)
    n_more = min(COMPARED_AT_ONCE, config.agreement_tokens - n_compared, len(rows.target_N))
    if n_more > 0:
        few = torch.linspace(0, len(rows.target_N) - 1, n_more).long()
        reading.agreement.append(agreement(lm, rows.hidden_ND[few], rows.target_N[few]))


def _enter(
    ledger: Ledger, readout: Readout, document_N: NDArray[np.int64], taught_N: Tensor
) -> None:
    signed_N3 = readout.projections.signed_N3
    for name, value_N in (
        ("nll", readout.nll_N),
        ("residual_zero", readout.residual_zero_N),
        ("known_zero", readout.known_zero_N),
        ("contribution", readout.projections.contribution_N),
        ("known_share", readout.projections.known_share_N),
        ("known_signed", signed_N3[:, 0]),
        ("unknown_signed", signed_N3[:, 1]),
        ("residual_signed", signed_N3[:, 2]),
    ):
        ledger.add(name, value_N, document_N)
    document_N = document_N[taught_N.numpy()]
    ledger.add("taught_tokens", torch.ones(len(document_N)), document_N)
    ledger.add("taught_forced", readout.forced_N[taught_N], document_N)
    ledger.add("taught_residual_zero", readout.residual_zero_N[taught_N], document_N)
