"""Log-probability of a continuation, given a context that is never masked (method §7.3, app. H).

    ar     Σ log p(x_i | x_<i)                              one forward pass, exact
    cdlm   Σ_B log p(block B | all earlier blocks, clean)   block by block over the exact cache

A block with m asked tokens is unmasked in some order. Over all orders alike, its log-probability is
at least

    Σ_{k=1..m}  E_{|M| = k}  1/k Σ_{i ∈ M} log p(x_i | block less M)

which is the per-block ELBO of `model.likelihood` with its rate integrated out. It is enumerated
where a block has few masks (m = 1: one, so that one token is exact), and sampled elsewhere: mask
counts k spread evenly over 1 … m, each weighted by m / k. What follows the continuation in its last
block stays <|mask|>, as in generation.

Masks are drawn by (seed, request, block), so neither the batch nor the other requests matter.

Shape suffixes used in this file:
    T position   P position of finished blocks   A row of a forward pass   N asked token
    M asked token of a block   D width   V vocabulary
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import sqrt

import torch
from torch import Tensor

from model.attention import KeysValues
from model.conditional_config import ConditionalConfig
from model.language_model import LanguageModel
from model.likelihood import target_nats
from model.mask_plans import planned
from model.transformer import NO_PAST, Past


@dataclass(frozen=True)
class Request:
    """A continuation behind its context."""

    ids_T: Tensor
    """int64: the context, then the continuation; block 0 begins with the first token."""

    first: int
    """Position of the continuation's first token, 1 or more."""

    name: int
    """Names the noise, 0 … 2⁶³ − 1: requests of one name and length get the same masks."""

    def __post_init__(self) -> None:
        if not 1 <= self.first < len(self.ids_T):
            raise ValueError(
                f"a continuation begins at position {self.first} of {len(self.ids_T)} tokens; it "
                f"needs a token before it (<|bos|> where there is no text), and one of its own"
            )


@dataclass(frozen=True)
class LogProbability:
    """Of a continuation, in nats."""

    nats: float
    standard_error_nats: float
    """0 where exact. Else from pairs of samples with neighbouring mask counts, which differ a
    little more than samples of one count would: the truth is no worse."""

    n_samples: int
    """Masks drawn for each block; 0 where every one was asked, so that nothing was left to chance.
    """

    n_rows: int
    """Sequences that went through the network for it, finished blocks aside."""


@torch.no_grad()
def log_probabilities(
    lm: LanguageModel, requests: Sequence[Request], config: ConditionalConfig
) -> list[LogProbability]:
    """One for each request, in their order."""
    check_lengths(lm, requests)
    if lm.config.backbone.attention == "causal":
        return _left_to_right(lm, requests, config.rows)
    tallies = [_Tally() for _ in requests]
    for places in _by_n_blocks(lm, requests, config.rows):
        _read_blocks(lm, [requests[at] for at in places], [tallies[at] for at in places], config)
    return [tally.total() for tally in tallies]


def check_lengths(lm: LanguageModel, requests: Sequence[Request]) -> None:
    """Raise where a request is longer than the network reads."""
    longest = max((len(request.ids_T) for request in requests), default=0)
    if longest > lm.config.backbone.max_length:
        raise ValueError(
            f"a context and its continuation have {longest} tokens, more than max_length "
            f"{lm.config.backbone.max_length}; cut the context on its left"
        )


def window(lm: LanguageModel, request: Request, start: int) -> Tensor:
    """The block of a request that begins at `start`, <|mask|> behind the request's end (T)."""
    backbone = lm.config.backbone
    end = min(start + backbone.block, backbone.max_length)
    ids_T = torch.full((end - start,), lm.config.mask_id)
    known_T = request.ids_T[start:end]
    ids_T[: len(known_T)] = known_T
    return ids_T


@dataclass(frozen=True)
class Finished:
    """Finished blocks in the cache. Requests that share them share a row of it."""

    past: Past
    row_of_request: list[int]

    def before(self, start: int, requests: Sequence[int]) -> Past:
        """What these requests see before position `start`: a part of the cache, exactly, since no
        block sees a later one."""
        if start == 0:
            return NO_PAST
        rows_A = torch.tensor([self.row_of_request[at] for at in requests])
        return Past(
            tuple(
                KeysValues(layer.keys_BGPC[rows_A, :, :start], layer.values_BGPC[rows_A, :, :start])
                for layer in self.past.layers
            )
        )


def finished(lm: LanguageModel, requests: Sequence[Request], n_tokens: int) -> Finished:
    """The first `n_tokens`, whole blocks, of each request."""
    if n_tokens == 0:
        return Finished(NO_PAST, [0] * len(requests))
    row_of: dict[tuple[int, ...], int] = {}
    row_of_request = [
        row_of.setdefault(tuple(request.ids_T[:n_tokens].tolist()), len(row_of))
        for request in requests
    ]
    return Finished(lm.extend(NO_PAST, torch.tensor(list(row_of))), row_of_request)


def _left_to_right(
    lm: LanguageModel, requests: Sequence[Request], rows: int
) -> list[LogProbability]:
    found = [LogProbability(0.0, 0.0, 0, 0)] * len(requests)
    by_length = sorted(range(len(requests)), key=lambda at: len(requests[at].ids_T))
    for start in range(0, len(by_length), rows):
        places = by_length[start : start + rows]
        states = causal_states(lm, [requests[at] for at in places])
        for at, state_ND in zip(places, states, strict=True):
            request = requests[at]
            nats_N = target_nats(lm, state_ND, request.ids_T[request.first :]).double()
            found[at] = LogProbability(-float(nats_N.sum()), 0.0, 0, 1)
    return found


def causal_states(lm: LanguageModel, requests: Sequence[Request]) -> list[Tensor]:
    """The states (N, D) that name each asked token; padding on the right is never seen."""
    longest = max(len(request.ids_T) for request in requests)
    ids_AT = torch.full((len(requests), longest), lm.config.pad_id)
    for row, request in enumerate(requests):
        ids_AT[row, : len(request.ids_T)] = request.ids_T
    hidden_ATD = lm.hidden(ids_AT)
    return [
        hidden_ATD[row, request.first - 1 : len(request.ids_T) - 1]
        for row, request in enumerate(requests)
    ]


def _by_n_blocks(lm: LanguageModel, requests: Sequence[Request], rows: int) -> Iterator[list[int]]:
    """Places of requests that end in the same block, at most `rows` at once."""

    def last_block(at: int) -> int:
        return (len(requests[at].ids_T) - 1) // lm.config.backbone.block

    for _, group in groupby(sorted(range(len(requests)), key=last_block), key=last_block):
        places = list(group)
        for start in range(0, len(places), rows):
            yield places[start : start + rows]


def _read_blocks(
    lm: LanguageModel,
    requests: Sequence[Request],
    tallies: Sequence["_Tally"],
    config: ConditionalConfig,
) -> None:
    """Requests that end in the same block: the cache once, then the noisy rows of each block."""
    block = lm.config.backbone.block
    last_start = (len(requests[0].ids_T) - 1) // block * block
    known = finished(lm, requests, last_start)
    for start in range(0, last_start + 1, block):
        rows = [
            row
            for at, request in enumerate(requests)
            if request.first < start + block
            for row in _noisy_rows(lm, request, at, start, config)
        ]
        for low in range(0, len(rows), config.rows):
            some = rows[low : low + config.rows]
            past = known.before(start, [row.request for row in some])
            for row, nats in zip(some, _nats(lm, some, past), strict=True):
                tallies[row.request].add(start, row, nats)


def _nats(lm: LanguageModel, rows: Sequence["_Row"], past: Past) -> list[float]:
    """Weighted nats of each row's counted tokens."""
    noisy_AT = torch.stack([row.noisy_T for row in rows])
    counted_AT = torch.stack([row.counted_T for row in rows])
    target_AT = torch.stack([row.target_T for row in rows])
    hidden_ATD = lm.hidden(noisy_AT, past)
    nats_AT = torch.zeros(noisy_AT.shape, dtype=torch.float64)
    nats_AT[counted_AT] = target_nats(lm, hidden_ATD[counted_AT], target_AT[counted_AT]).double()
    weight_A = torch.tensor([row.weight for row in rows], dtype=torch.float64)
    found: list[float] = (nats_AT.sum(dim=1) * weight_A).tolist()
    return found


@dataclass(frozen=True)
class _Row:
    """One noisy block."""

    request: int
    noisy_T: Tensor
    target_T: Tensor
    counted_T: Tensor
    weight: float
    sampled: bool


def _noisy_rows(
    lm: LanguageModel, request: Request, place: int, start: int, config: ConditionalConfig
) -> Iterator[_Row]:
    """The block from `start` on under each of its masks."""
    target_T = window(lm, request, start)
    at_T = torch.arange(start, start + len(target_T))
    asked_T = (at_T >= request.first) & (at_T < len(request.ids_T))
    plan = planned(int(asked_T.sum()), request.name, start // lm.config.backbone.block, config)
    for hidden_M, counted_M, weight in zip(
        plan.hidden_SM, plan.counted_SM, plan.weight_S.tolist(), strict=True
    ):
        hidden_T, counted_T = torch.zeros_like(asked_T), torch.zeros_like(asked_T)
        hidden_T[asked_T], counted_T[asked_T] = hidden_M, counted_M
        noisy_T = target_T.masked_fill(hidden_T, lm.config.mask_id)
        yield _Row(place, noisy_T, target_T, counted_T, weight, plan.sampled)


@dataclass
class _Tally:
    """What was found of one request, block by block."""

    nats: float = 0.0
    n_rows: int = 0
    drawn_of_block: dict[int, list[float]] = field(default_factory=dict)

    def add(self, start: int, row: _Row, nats: float) -> None:
        self.nats -= nats
        self.n_rows += 1
        if row.sampled:
            self.drawn_of_block.setdefault(start, []).append(nats)

    def total(self) -> LogProbability:
        # Each value is already divided by the number of samples: their sum is the estimate. Two
        # neighbours of one stratum each stand for two samples of one stratum.
        variance = sum(
            (drawn[at] - drawn[at + 1]) ** 2
            for drawn in self.drawn_of_block.values()
            for at in range(0, len(drawn), 2)
        )
        n_samples = max(map(len, self.drawn_of_block.values()), default=0)
        return LogProbability(self.nats, sqrt(variance), n_samples, self.n_rows)
