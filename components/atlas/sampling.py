"""Which chunks the tagger sees (paper §4, Atlas stage one: a stratified sample of the corpus).

Most come from the training split and make the library; a few come from the validation split, so
that annotators can be compared on chunks that neither library nor annotator has seen. The test
split is never tagged.

Strata are source and domain; each gets its share of the sample, at least one chunk. Further chunks
for phrases come from what is left of the training split; how many leaves the sample as it is.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from components.chunks import ChunkRows, ChunkTexts

_ROWS_PER_BATCH = 4096
FEWEST_WORDPIECES = 8
"""A shorter chunk says too little."""


@dataclass(frozen=True)
class Passage:
    """A chunk that is to be tagged."""

    chunk_id: int
    text: str


@dataclass(frozen=True)
class Sample:
    """Chunks to tag, by what they are for."""

    train: list[Passage]
    held_out: list[Passage]

    further: list[Passage]
    """Of the training split, beside `train`: for phrases alone, in the order of the corpus."""

    @property
    def passages(self) -> list[Passage]:
        """Training and held-out chunks, in the order of the corpus."""
        return sorted([*self.train, *self.held_out], key=lambda passage: passage.chunk_id)


class _Stratum(NamedTuple):
    """Chunks that are alike in where they come from."""

    split: str
    source: str
    domain: str


_Places = Mapping[_Stratum, Sequence[int]]
"""Numbers of chunks among those of their stratum, ascending."""


def draw(
    documents: Path, chunks: Path, n_train: int, n_held_out: int, seed: int, n_further: int = 0
) -> Sample:
    """A seeded sample. Chunks cut inside words, or of hardly any words, are passed over.

    Chunks are counted first and then picked by their place in a stratum, so that no text is read
    but that of the sample.
    """
    rows = ChunkRows(documents, chunks, ("split", "source", "domain"))
    available = Counter(stratum for _, stratum in _candidates(rows))
    rng = np.random.default_rng(seed)
    train, further = _drawn(available, "train", rng, n_train, n_further)
    held_out, _ = _drawn(available, "valid", rng, n_held_out, 0)
    chunk_at = _picked(rows, (train, further, held_out))
    texts = ChunkTexts(documents, chunks).at([*chunk_at.values()])
    passage_at = dict(zip(chunk_at, map(Passage, chunk_at.values(), texts), strict=True))

    def at(places: _Places) -> list[Passage]:
        return [passage_at[stratum, place] for stratum in places for place in places[stratum]]

    return Sample(
        at(train), at(held_out), sorted(at(further), key=lambda passage: passage.chunk_id)
    )


def _candidates(rows: ChunkRows) -> Iterator[tuple[int, _Stratum]]:
    """Chunks that may be tagged, with their strata, in the order of the corpus."""
    columns = ("chunk_id", "split", "source", "domain", "status", "n_wordpieces")
    for batch in rows.batches(_ROWS_PER_BATCH):
        for chunk_id, split, source, domain, status, n in zip(
            *(batch[column] for column in columns), strict=True
        ):
            long_enough = status != "segmentation_error" and n >= FEWEST_WORDPIECES
            if split in ("train", "valid") and long_enough:
                yield chunk_id, _Stratum(split, source, domain)


def _drawn(
    available: Mapping[_Stratum, int], split: str, rng: np.random.Generator, n: int, n_further: int
) -> tuple[_Places, _Places]:
    """`n` places and further ones, or all there are; strata in proportion."""
    strata = sorted(stratum for stratum in available if stratum.split == split)
    sizes = [available[stratum] for stratum in strata]
    # With more to share out no stratum gets fewer, so what is drawn first stays the same.
    firsts = shares(sizes, n)
    lasts = shares(sizes, n + n_further) if n_further else firsts
    drawn, further = {}, {}
    for stratum, size, first, last in zip(strata, sizes, firsts, lasts, strict=True):
        places = rng.permutation(size)
        drawn[stratum] = sorted(places[:first].tolist())
        further[stratum] = sorted(places[first:last].tolist())
    return drawn, further


def _picked(rows: ChunkRows, drawn: Iterable[_Places]) -> dict[tuple[_Stratum, int], int]:
    """The chunk at each place that was drawn."""
    wanted = {
        (stratum, place) for places in drawn for stratum in places for place in places[stratum]
    }
    seen: Counter[_Stratum] = Counter()
    found = {}
    for chunk_id, stratum in _candidates(rows):
        if (stratum, seen[stratum]) in wanted:
            found[stratum, seen[stratum]] = chunk_id
        seen[stratum] += 1
    return found


def shares(available: Sequence[int], n: int) -> list[int]:
    """`n` in proportion to what is available, each at least one where there is one (Webster)."""
    counts = [0] * len(available)

    def turn(at: int) -> tuple[bool, float, int]:
        """Least first: those that have none, then those furthest below their share."""
        return counts[at] > 0, -available[at] / (2 * counts[at] + 1), at

    turns = [turn(at) for at, there in enumerate(available) if there]
    heapq.heapify(turns)
    for _ in range(min(n, sum(available))):
        *_, at = turns[0]
        counts[at] += 1
        if counts[at] < available[at]:
            heapq.heapreplace(turns, turn(at))
        else:
            heapq.heappop(turns)
    return counts
