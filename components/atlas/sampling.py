"""Which chunks the tagger sees (paper §4, Atlas stage one: a stratified sample of the corpus).

Most come from the training split and make the library; a few come from the validation split, so
that annotators can be compared on chunks that neither library nor annotator has seen. The test
split is never tagged.

Strata are source and domain; each gets its share of the sample, at least one chunk. Further chunks
for phrases come from what is left of the training split; how many leaves the sample as it is.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from components.chunks import texts

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


@dataclass
class _Strata:
    """Passages of one split by source and domain."""

    passages: dict[tuple[str, str], list[Passage]] = field(default_factory=dict)

    def draw(
        self, n: int, rng: np.random.Generator, n_further: int = 0
    ) -> tuple[list[Passage], list[Passage]]:
        """`n` passages and further ones, or all there are; strata in proportion."""
        names = sorted(self.passages)
        available = [len(self.passages[name]) for name in names]
        # With more to share out no stratum gets fewer, so what is drawn first stays the same.
        firsts = shares(available, n)
        lasts = shares(available, n + n_further) if n_further else firsts
        drawn, further = [], []
        for name, first, last in zip(names, firsts, lasts, strict=True):
            rows = rng.permutation(len(self.passages[name]))
            drawn += [self.passages[name][row] for row in sorted(rows[:first].tolist())]
            further += [self.passages[name][row] for row in sorted(rows[first:last].tolist())]
        return drawn, further


def draw(
    documents: Path, chunks: Path, n_train: int, n_held_out: int, seed: int, n_further: int = 0
) -> Sample:
    """A seeded sample. Chunks cut inside words, or of hardly any words, are passed over."""
    train, valid = _Strata(), _Strata()
    for batch in texts(documents, chunks, rows=_ROWS_PER_BATCH):
        columns = ("chunk_id", "text", "split", "source", "domain", "status", "n_wordpieces")
        for chunk_id, text, split, source, domain, status, n in zip(
            *(batch[column] for column in columns), strict=True
        ):
            strata = {"train": train, "valid": valid}.get(split)
            if strata and status != "segmentation_error" and n >= FEWEST_WORDPIECES:
                passages = strata.passages.setdefault((source, domain), [])
                passages.append(Passage(chunk_id, text))
    rng = np.random.default_rng(seed)
    drawn, further = train.draw(n_train, rng, n_further)
    held_out, _ = valid.draw(n_held_out, rng)
    return Sample(drawn, held_out, sorted(further, key=lambda passage: passage.chunk_id))


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
