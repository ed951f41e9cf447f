"""Which window of which source comes at which place of training (method §4.9: global shuffle).

A place's window is a pure function of (seed, place): a Feistel network permutes the windows of an
epoch, so nothing is stored, any place can be resumed, and ranks need no word with each other.

    place  --epoch = place // n-->  permutation of 0 … n−1  -->  window

A mixture first turns the place into a source (in cycles with exact quotas, themselves permuted) and
a place within that source. Each source then goes through its own windows, epoch after epoch. What
every source gave up to a place therefore has a closed form (`Mixture.given`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

CYCLE = 1_000
"""Places in which each source of a mixture gets its share exactly."""

_ROUNDS = 5
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_GOLDEN = 0x9E3779B97F4A7C15
_WORD = (1 << 64) - 1


def order(n: int, seed: int, epoch: int, i: int) -> int:
    """The element of 0 … n−1 that comes at place i of this epoch's order."""
    return int(permuted(np.array([i]), n, seed, epoch)[0])


def place_of(n: int, seed: int, epoch: int, element: int) -> int:
    """The place at which an element of 0 … n−1 comes in this epoch's order: `order`, backwards."""
    values = _walked(np.array([element]), n, _keys(seed, epoch)[::-1], _unfeistel)
    return int(values[0])


def permuted(places: Integers, n: int, seed: int, epoch: int) -> Integers:
    """`order` for many places of one epoch: a bijection of 0 … n−1."""
    return _walked(places, n, _keys(seed, epoch), _feistel)


def endless(places: Integers, n: int, seed: int) -> Integers:
    """The elements of 0 … n−1 at these places of all epochs, one after the other."""
    found = np.empty_like(places)
    for epoch in np.unique(places // n):
        now = places // n == epoch
        found[now] = permuted(places[now] % n, n, seed, int(epoch))
    return found


@dataclass(frozen=True)
class Drawn:
    """What comes at some places: a source, by its number, and an element of it."""

    source_N: Integers
    element_N: Integers


@dataclass(frozen=True)
class Given:
    """What a source gave so far."""

    n_elements: int
    n_last: int
    """How many of those were its last element, the one window that may be short."""


class Order(Protocol):
    """Which element of which source comes at each place of training."""

    @property
    def names(self) -> list[str]:
        """The sources, by number."""
        ...

    def at(self, places: Integers, seed: int) -> Drawn:
        """What comes at each place."""
        ...

    def given(self, n_places: int, seed: int) -> list[Given]:
        """What each source gave at the first `n_places` places, without going through them."""
        ...


@dataclass(frozen=True)
class Single:
    """One source: an epoch is every element once."""

    name: str
    size: int

    @property
    def names(self) -> list[str]:
        """See Order."""
        return [self.name]

    def at(self, places: Integers, seed: int) -> Drawn:
        """See Order."""
        return Drawn(np.zeros_like(places), endless(places, self.size, seed))

    def given(self, n_places: int, seed: int) -> list[Given]:
        """See Order."""
        return [Given(n_places, n_last(n_places, self.size, seed))]


@dataclass(frozen=True)
class Shares:
    """Sources by name and the share of places each gets, exactly in every cycle.

    Sources are numbered in the order of their names.
    """

    weights: Mapping[str, float]

    def __post_init__(self) -> None:
        if not self.weights or min(self.weights.values()) < 0 or sum(self.weights.values()) <= 0:
            raise ValueError(f"weights are {dict(self.weights)}; give one above zero")
        lost = {
            name: self.weights[name]
            for name, n in zip(self.names, self.quotas, strict=True)
            if n == 0 and self.weights[name] > 0
        }
        if lost:
            raise ValueError(
                f"the weights {lost} are less than half a place in {CYCLE:,} of the sum "
                f"{sum(self.weights.values())}, so these sources would never come; raise them or "
                f"set them to 0"
            )

    @property
    def names(self) -> list[str]:
        """The sources, by number."""
        return sorted(self.weights)

    @cached_property
    def quotas(self) -> Integers:
        """Places per cycle of each source: its share, by largest remainder."""
        weights = np.array([self.weights[name] for name in self.names])
        exact = weights / weights.sum() * CYCLE
        quotas = np.floor(exact).astype(np.int64)
        largest = np.argsort(quotas - exact, kind="stable")[: CYCLE - int(quotas.sum())]
        quotas[largest] += 1
        return quotas

    def at(self, places: Integers, seed: int) -> Drawn:
        """The source of each place, and which of that source's own places it is."""
        starts = np.concatenate([[0], np.cumsum(self.quotas)])
        slots = endless(places, CYCLE, seed)
        source_N = np.searchsorted(starts, slots, side="right") - 1
        within_N = places // CYCLE * self.quotas[source_N] + slots - starts[source_N]
        return Drawn(source_N, within_N)

    def counts(self, n_places: int, seed: int) -> Integers:
        """How many of the first `n_places` places each source got, without going through them."""
        n_cycles = n_places // CYCLE
        rest = self.at(np.arange(n_cycles * CYCLE, n_places), seed).source_N
        return n_cycles * self.quotas + np.bincount(rest, minlength=len(self.names))


@dataclass(frozen=True)
class Mixture:
    """Sources by name: how many elements each has, and the share of places it gets.

    Those without a weight never come.
    """

    sizes: Mapping[str, int]
    weights: Mapping[str, float]

    def __post_init__(self) -> None:
        unknown = sorted(set(self.weights) - set(self.sizes))
        if unknown:
            raise ValueError(
                f"weights are given for {unknown}, but the sources are {sorted(self.sizes)}"
            )
        assert self.shares.names == self.names

    @cached_property
    def shares(self) -> Shares:
        """Which source comes where. Raises ValueError for weights that make none come."""
        return Shares(self.weights)

    @property
    def names(self) -> list[str]:
        """See Order."""
        return sorted(self.weights)

    def at(self, places: Integers, seed: int) -> Drawn:
        """See Order."""
        drawn = self.shares.at(places, seed)
        element_N = np.empty_like(places)
        for k in np.unique(drawn.source_N).tolist():
            now = drawn.source_N == k
            element_N[now] = endless(drawn.element_N[now], self.sizes[self.names[k]], seed)
        return Drawn(drawn.source_N, element_N)

    def given(self, n_places: int, seed: int) -> list[Given]:
        """See Order. Whole cycles by their quotas, the places of the last one by themselves."""
        n_cycles = n_places // CYCLE
        rest = self.shares.at(np.arange(n_cycles * CYCLE, n_places), seed)
        found = []
        for k, name in enumerate(self.names):
            size, whole = self.sizes[name], n_cycles * int(self.shares.quotas[k])
            some = endless(rest.element_N[rest.source_N == k], size, seed)
            last = n_last(whole, size, seed) + int((some == size - 1).sum())
            found.append(Given(whole + len(some), last))
        return found


def n_last(n_places: int, size: int, seed: int) -> int:
    """How often the last element of 0 … size−1 is among the first `n_places` of `endless`."""
    n_epochs, rest = divmod(n_places, size)
    return n_epochs + (rest > 0 and place_of(size, seed, n_epochs, size - 1) < rest)


def _walked(places: Integers, n: int, keys: Sequence[int], network: "_Network") -> Integers:
    """A network's permutation of 0 … n−1: it permutes 0 … 4^half_bits − 1, so walk on outside."""
    if n < 1 or (places.size and (places.min() < 0 or places.max() >= n)):
        raise ValueError(f"places are {places.min()} … {places.max()}, but must be in 0 … {n - 1}")
    half_bits = max(1, ((n - 1).bit_length() + 1) // 2)
    values = network(places.astype(np.uint64), half_bits, keys)
    while (outside := values >= n).any():
        values[outside] = network(values[outside], half_bits, keys)
    return values.astype(np.int64)


_Network = Callable[[NDArray[np.uint64], int, Sequence[int]], NDArray[np.uint64]]


def _feistel(values: NDArray[np.uint64], half_bits: int, keys: Sequence[int]) -> NDArray[np.uint64]:
    shift, mask = np.uint64(half_bits), np.uint64((1 << half_bits) - 1)
    left, right = values >> shift, values & mask
    for key in keys:
        left, right = right, left ^ (_scrambled(right ^ np.uint64(key)) & mask)
    return (left << shift) | right


def _unfeistel(
    values: NDArray[np.uint64], half_bits: int, keys: Sequence[int]
) -> NDArray[np.uint64]:
    """`_feistel` undone, with its keys in reverse."""
    shift, mask = np.uint64(half_bits), np.uint64((1 << half_bits) - 1)
    left, right = values >> shift, values & mask
    for key in keys:
        left, right = right ^ (_scrambled(left ^ np.uint64(key)) & mask), left
    return (left << shift) | right


def _scrambled(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    values = (values ^ (values >> np.uint64(30))) * _MIX_1
    values = (values ^ (values >> np.uint64(27))) * _MIX_2
    return values ^ (values >> np.uint64(31))


@lru_cache(maxsize=4096)
def _keys(seed: int, epoch: int) -> tuple[int, ...]:
    """The rounds' keys: `_scrambled` in plain integers, which is faster one by one."""
    keys = []
    for turn in range(_ROUNDS):
        key = 0
        for part in (seed, epoch, turn):
            key = (key ^ part) + _GOLDEN & _WORD
            key = (key ^ (key >> 30)) * int(_MIX_1) & _WORD
            key = (key ^ (key >> 27)) * int(_MIX_2) & _WORD
            key ^= key >> 31
        keys.append(key)
    return tuple(keys)
