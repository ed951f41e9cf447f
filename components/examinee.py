"""A checkpoint that is asked in text: how likely is this, and how do you go on (method §5, §7.3).

Every text begins with <|bos|>. One that is longer than the network reads loses its beginning, and
how many tokens it lost is told. Special tokens that a text spells out stay text. What is found
depends on the text, the seed and the network: not on the batch, nor on what else is asked.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

import torch

from components.networks import Network
from model.conditional import LogProbability, Request, log_probabilities
from model.conditional_config import ConditionalConfig
from model.greedy import are_greedy
from model.sampling import generate
from model.sampling_config import SamplingConfig

_NAME_BYTES = 8


@dataclass(frozen=True)
class Question:
    """A continuation to judge, behind its context. Either may be empty."""

    context: str
    continuation: str


@dataclass(frozen=True)
class Judged:
    """How likely a continuation is."""

    nats: float
    """Log-probability, 0 or less."""

    standard_error_nats: float
    """0 where exact."""

    n_tokens: int
    n_windows: int
    """Sequences that it was read in: 1 if it fits the network."""

    n_dropped: int
    """Tokens of the context that the network had no room for."""

    n_samples: int
    """Masks drawn for each block; 0 where the value is exact."""


@dataclass(frozen=True)
class Wish:
    """A text to go on with."""

    context: str
    until: tuple[str, ...]
    """The text ends before the first of these that it would contain."""

    n_new: int
    """Most tokens; at most half of what the network reads."""

    temperature: float = 0.0
    top_p: float = 1.0
    draw: int = 0
    """Tells texts apart that are drawn from one context: each gets a number of its own."""


@dataclass(frozen=True)
class Continued:
    """A text that was written."""

    text: str
    n_tokens: int
    n_dropped: int
    """Tokens of the context that the network had no room for."""

    ended: bool
    """By a stop token or a stop string, not by the limit on new tokens."""


class Examinee:
    """One checkpoint under one way of estimating."""

    def __init__(self, network: Network, config: ConditionalConfig) -> None:
        self.network, self.config = network, config
        self._lm, self._tokenizer = network.lm, network.tokenizer
        self._longest = network.lm.config.backbone.max_length

    def likelihoods(self, questions: Sequence[Question]) -> list[Judged]:
        """Log-probability of each continuation given its context."""
        cut = [self._cut(question) for question in questions]
        asked = [request for one in cut for request in one.requests]
        found = iter(log_probabilities(self._lm, asked, self.config))
        return [_judged(one, list(islice(found, len(one.requests)))) for one in cut]

    def greedy(self, questions: Sequence[Question]) -> list[bool]:
        """Whether temperature 0 would write each continuation, token for token."""
        cut = [self._cut(question) for question in questions]
        asked = [request for one in cut for request in one.requests]
        found = iter(are_greedy(self._lm, asked, self.config.rows))
        return [all(list(islice(found, len(one.requests)))) for one in cut]

    def continued(self, wishes: Sequence[Wish]) -> list[Continued]:
        """Go on with each text until it ends; stop strings are looked for after every block."""
        pages = [self._page(wish) for wish in wishes]
        for some in _alike(pages, self.config.rows):
            self._write(some)
        return [Continued(page.text, page.n_written, page.n_dropped, page.ended) for page in pages]

    def _cut(self, question: Question) -> "_Cut":
        before, after = self._encoded(question)
        ids = [self._lm.config.bos_id, *before, *after]
        first, requests = len(before) + 1, list[Request]()
        n_dropped = 0
        for window in _windows(first, len(ids), self._longest):
            n_dropped = n_dropped if requests else max(0, window.start - 1)
            requests.append(
                Request(
                    torch.tensor(ids[window.start : window.end]),
                    window.first - window.start,
                    _name(question.context, question.continuation, str(len(requests))),
                )
            )
        return _Cut(requests, len(after), n_dropped)

    def _encoded(self, question: Question) -> tuple[list[int], list[int]]:
        """Ids of both parts. Spaces before the continuation are its own, as words take them; it is
        cut off the whole where the context's tokens begin the whole's, else encoded by itself."""
        given = _whole(question.context)
        context = given.rstrip()
        continuation = given[len(context) :] + _whole(question.continuation)
        before = self._tokenizer.encode(context)
        whole = self._tokenizer.encode(context + continuation)
        if whole[: len(before)] == before:
            return before, whole[len(before) :]
        return before, self._tokenizer.encode(continuation)

    def _page(self, wish: Wish) -> "_Page":
        ids = [self._lm.config.bos_id, *self._tokenizer.encode(_whole(wish.context))]
        n_new = min(wish.n_new, self._longest // 2)
        kept = ids[-(self._longest - n_new) :]
        return _Page(wish, kept, n_new, max(0, len(ids) - len(kept) - 1))

    def _write(self, pages: Sequence["_Page"]) -> None:
        """Pages that are written alike."""
        decode, first = self._tokenizer.decode, pages[0]

        def goes_on(row: int, ids: list[int]) -> bool:
            return _end(decode(ids), pages[row].wish.until) is None

        traces = generate(
            self._lm,
            [torch.tensor(page.prompt) for page in pages],
            SamplingConfig(
                n_new=first.n_new, temperature=first.wish.temperature, top_p=first.wish.top_p,
                seed=self.config.seed,
            ),
            stop_ids=[self._tokenizer.specials.end_of_turn_id],
            sample_ids=[_name(page.wish.context, str(page.wish.draw)) for page in pages],
            heard=goes_on,
        )  # fmt: skip
        for page, trace in zip(pages, traces, strict=True):
            text = decode(trace.generated)
            end = _end(text, page.wish.until)
            page.text, page.n_written = text[:end], len(trace.generated)
            page.ended = trace.stopped or end is not None


@dataclass(frozen=True)
class _Cut:
    """A question as the network reads it."""

    requests: list[Request]
    n_tokens: int
    n_dropped: int


@dataclass
class _Page:
    """A text being written."""

    wish: Wish
    prompt: list[int]
    n_new: int
    n_dropped: int
    n_written: int = 0
    text: str = ""
    ended: bool = False

    @property
    def how(self) -> tuple[int, float, float]:
        """What pages of one batch must share."""
        return self.n_new, self.wish.temperature, self.wish.top_p


@dataclass(frozen=True)
class _Window:
    """Part of a sequence: positions start … end − 1, judged from `first` on."""

    start: int
    first: int
    end: int


def _windows(first: int, n_tokens: int, longest: int) -> Iterator[_Window]:
    """Sequences that judge each token from `first` on once, with as much context as there is room.

    Later ones judge half of what the network reads, given the other half.
    """
    while first < n_tokens:
        end = min(n_tokens, max(longest, first + longest // 2))
        yield _Window(max(0, end - longest), first, end)
        first = end


def _alike(pages: Sequence[_Page], rows: int) -> Iterator[list[_Page]]:
    """Pages that are written alike, at most `rows` at once, those of similar lengths together."""
    ordered = sorted(pages, key=lambda page: (page.how, len(page.prompt)))
    for _, group in groupby(ordered, key=lambda page: page.how):
        some = list(group)
        for start in range(0, len(some), rows):
            yield some[start : start + rows]


def _end(text: str, until: Sequence[str]) -> int | None:
    """Where the first stop string begins."""
    return min((text.find(stop) for stop in until if stop and stop in text), default=None)


def _judged(cut: _Cut, found: Sequence[LogProbability]) -> Judged:
    nats = sum(one.nats for one in found)
    if not math.isfinite(nats):
        raise ValueError(
            f"a continuation got a log-probability of {nats}; are the network's weights damaged?"
        )
    return Judged(
        nats=nats,
        standard_error_nats=math.sqrt(sum(one.standard_error_nats**2 for one in found)),
        n_tokens=cut.n_tokens,
        n_windows=len(cut.requests),
        n_dropped=cut.n_dropped,
        n_samples=max((one.n_samples for one in found), default=0),
    )


def _whole(text: str) -> str:
    """The text with U+FFFD for each half of a pair of surrogates, which no tokenizer reads."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _name(*parts: str) -> int:
    """A number below 2⁶³ that these texts and no others have."""
    digest = hashlib.blake2b(digest_size=_NAME_BYTES)
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(_NAME_BYTES, "big") + encoded)
    return int.from_bytes(digest.digest(), "big") >> 1
