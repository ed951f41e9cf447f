"""How a study is drawn, read back and analysed (paper appendix D).

The defaults are the published design where it is known: 100 concepts, nine raters, three names a
concept; four raters of each concept's names gave its 402 pairs.
"""

import hashlib
from pathlib import Path
from typing import Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from model.config import Config

LOWEST, HIGHEST = 1, 5
"""Ends of both scales: how recognisable, how well a name fits."""


class Raters(Config):
    """Who is asked what."""

    n_raters: PositiveInt = 9

    ratings_per_concept: PositiveInt = 3
    """Raters of each concept."""

    seed: NonNegativeInt = 0

    @model_validator(mode="after")
    def _enough_raters(self) -> Self:
        if self.ratings_per_concept > self.n_raters:
            raise ValueError(
                f"ratings_per_concept is {self.ratings_per_concept} but there are only "
                f"{self.n_raters} raters; raise n_raters or lower ratings_per_concept"
            )
        return self


class DrawConfig(Raters):
    """Everything `draw` is told: phase 1, words alone."""

    n_concepts: PositiveInt = 100

    n_words: PositiveInt = 15
    """Lifted words shown; a concept with fewer that a person can read is passed over."""

    min_support: PositiveInt = 5
    """Chunks of the concept that a word occurs in, at the least."""

    min_letters: PositiveInt = 3

    whole_share: float = Field(default=0.5, ge=0, le=1)
    """A token is a word to a reader if at least this share of its occurrences is a whole word."""

    sample_tokens: PositiveInt = 2_000_000
    """Tokens of the training split that `whole_share` is counted on, from its start."""


class PairConfig(Raters):
    """Everything `pair` is told: phase 2, three names for the same words."""

    ratings_per_concept: PositiveInt = 4

    @model_validator(mode="after")
    def _someone_else_named_it(self) -> Self:
        if self.ratings_per_concept == self.n_raters:
            raise ValueError(
                f"all {self.n_raters} raters would rate each concept, the author of its name "
                f"too; lower ratings_per_concept to {self.n_raters - 1} or add a rater"
            )
        return self


class CollectConfig(Config):
    """Everything `collect` is told."""

    folder: str
    """Where the files lie that raters sent back, one a rater."""

    digest: str
    """SHA-256 over those files, so that another answer is another input. `of` sets it."""

    allow_missing: bool = False
    """Whether unanswered items and absent raters are counted instead of refused."""

    max_name_chars: PositiveInt = 80
    """A name in a rater's own words is no longer than this."""

    @classmethod
    def of(cls, folder: Path, *, allow_missing: bool = False) -> Self:
        """The folder as it is now."""
        return cls(folder=str(folder), digest=answers_digest(folder), allow_missing=allow_missing)


class AnalyseConfig(Config):
    """Everything `analyse` is told."""

    bootstrap_draws: int = Field(default=10_000, ge=10_000)

    low_below: float = Field(default=2.5, gt=LOWEST, lt=HIGHEST)
    high_from: float = Field(default=3.5, gt=LOWEST, lt=HIGHEST)
    """Concepts by their mean coherence: low, middle from `low_below`, high from `high_from`."""

    power_concepts: tuple[PositiveInt, ...] = (5, 10, 20, 40, 100)
    """Sizes of study whose power is simulated, in concepts."""

    power_runs: PositiveInt = 2_000

    ordinal: bool = False
    """Fit the cumulative-link model too. It needs the extra `ordinal` (PyMC)."""

    ordinal_draws: PositiveInt = 1_000
    """Draws kept of each of the sampler's four chains, after as many to tune."""

    seed: NonNegativeInt = 0

    @model_validator(mode="after")
    def _bins_in_order(self) -> Self:
        if self.low_below >= self.high_from:
            raise ValueError(
                f"low_below is {self.low_below}, not below high_from, {self.high_from}; the "
                f"middle bin would be empty"
            )
        if any(n < 2 for n in self.power_concepts):
            raise ValueError(f"power_concepts is {self.power_concepts}; a test needs two or more")
        return self


def answers_digest(folder: Path) -> str:
    """SHA-256 over names and bytes of the folder's JSON files."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.json")):
        digest.update(f"{path.name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()
