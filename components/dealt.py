"""A packed source inside a mixture with streams: its windows, shuffled globally, dealt to lanes.

Lane l has the places l, l + lanes, … of the source's endless order, so lanes together go through
every window once an epoch, however many ranks read them.

Shape suffixes used in this file:
    B batch   N places, anything flat
"""

from dataclasses import dataclass

from components.loader import Contribution, Source
from components.order import Integers, endless, n_last
from model.diffusion import Batch


@dataclass(frozen=True)
class Dealt:
    """Windows of a packed source by lane and place in it. Nothing moves, so no state is kept."""

    source: Source
    length: int
    lanes: int
    seed: int

    def batch(self, lane_B: Integers, within_B: Integers, sample_ids_B: Integers) -> Batch:
        """The windows at these places of these lanes."""
        windows_B = self.source.windows(self._elements(lane_B, within_B))
        return self.source.stream.batch("train", self.length, windows_B, sample_ids=sample_ids_B)

    def given(self, n_whole: int, lane_N: Integers, within_N: Integers) -> Contribution:
        """What the first `n_whole` places of every lane and these further ones come to."""
        some_N = self._elements(lane_N, within_N)
        n_windows = n_whole * self.lanes + len(some_N)
        n_short = n_last(n_whole * self.lanes, self._size, self.seed)
        n_short += int((some_N == self._size - 1).sum())
        missing = n_short * self.source.missing_tokens(self.length)
        return Contribution(
            n_windows, n_windows * self.length - missing, epochs=n_windows / self._size
        )

    def _elements(self, lane_N: Integers, within_N: Integers) -> Integers:
        return endless(within_N * self.lanes + lane_N, self._size, self.seed)

    @property
    def _size(self) -> int:
        return self.source.size(self.length)
