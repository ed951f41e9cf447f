"""Which window of the token stream comes at which place of training (method: global shuffle, §9.3).

A place's window is a pure function of (seed, place): a Feistel network permutes the windows of an
epoch, so nothing is stored, any place can be resumed, and ranks need no word with each other.

    place  --epoch = place // n-->  permutation of 0 … n−1  -->  window

A mixture first turns the place into a domain (in cycles with exact quotas, themselves permuted) and
a place within that domain. Each domain then goes through its own windows, epoch after epoch.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

_ROUNDS = 5
_CYCLE = 1_000
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_GOLDEN = 0x9E3779B97F4A7C15
_WORD = (1 << 64) - 1


def order(n: int, seed: int, epoch: int, i: int) -> int:
    """The element of 0 … n−1 that comes at place i of this epoch's order."""
    return int(permuted(np.array([i]), n, seed, epoch)[0])


def permuted(places: Integers, n: int, seed: int, epoch: int) -> Integers:
    """`order` for many places of one epoch: a bijection of 0 … n−1."""
    if n < 1 or places.min() < 0 or places.max() >= n:
        raise ValueError(f"places are {places.min()} … {places.max()}, but must be in 0 … {n - 1}")
    half_bits = max(1, ((n - 1).bit_length() + 1) // 2)
    keys = [_key(seed, epoch, turn) for turn in range(_ROUNDS)]
    values = _feistel(places.astype(np.uint64), half_bits, keys)
    while (outside := values >= n).any():  # the network permutes 0 … 4^half_bits − 1: walk on
        values[outside] = _feistel(values[outside], half_bits, keys)
    return values.astype(np.int64)


def endless(places: Integers, n: int, seed: int) -> Integers:
    """The elements of 0 … n−1 at these places of all epochs, one after the other."""
    found = np.empty_like(places)
    for epoch in np.unique(places // n):
        now = places // n == epoch
        found[now] = permuted(places[now] % n, n, seed, int(epoch))
    return found


@dataclass(frozen=True)
class Mixture:
    """Windows by domain, with the share of places each domain gets."""

    windows: Mapping[str, Integers]
    weights: Mapping[str, float]

    def __post_init__(self) -> None:
        unknown = sorted(set(self.weights) - set(self.windows))
        if unknown:
            raise ValueError(
                f"domain_weights names {unknown}, but the windows belong to {sorted(self.windows)}"
            )
        if not self.weights or min(self.weights.values()) < 0 or sum(self.weights.values()) <= 0:
            raise ValueError(f"domain_weights are {dict(self.weights)}; give one above zero")

    def windows_at(self, places: Integers, seed: int) -> Integers:
        """The window that comes at each place."""
        domains = sorted(self.weights)
        quotas = self._quotas(domains)
        starts = np.concatenate([[0], np.cumsum(quotas)])
        slots = endless(places, _CYCLE, seed)
        which = np.searchsorted(starts, slots, side="right") - 1
        within = places // _CYCLE * quotas[which] + slots - starts[which]
        found = np.empty_like(places)
        for k in np.unique(which):
            windows = self.windows[domains[k]]
            found[which == k] = windows[endless(within[which == k], len(windows), seed)]
        return found

    def _quotas(self, domains: list[str]) -> Integers:
        """Places per cycle of each domain: its share, by largest remainder."""
        weights = np.array([self.weights[domain] for domain in domains])
        exact = weights / weights.sum() * _CYCLE
        quotas = np.floor(exact).astype(np.int64)
        largest = np.argsort(quotas - exact, kind="stable")[: _CYCLE - int(quotas.sum())]
        quotas[largest] += 1
        return quotas


def _feistel(values: NDArray[np.uint64], half_bits: int, keys: list[int]) -> NDArray[np.uint64]:
    shift, mask = np.uint64(half_bits), np.uint64((1 << half_bits) - 1)
    left, right = values >> shift, values & mask
    for key in keys:
        left, right = right, left ^ (_scrambled(right ^ np.uint64(key)) & mask)
    return (left << shift) | right


def _scrambled(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    values = (values ^ (values >> np.uint64(30))) * _MIX_1
    values = (values ^ (values >> np.uint64(27))) * _MIX_2
    return values ^ (values >> np.uint64(31))


def _key(seed: int, epoch: int, turn: int) -> int:
    key = 0
    for part in (seed, epoch, turn):
        state = np.array([(key ^ part) + _GOLDEN & _WORD], dtype=np.uint64)
        key = int(_scrambled(state)[0])
    return key
