"""How documents become a token stream, and which words count as a concept's own."""

from typing import Self

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from model.config import Config


class PackConfig(Config):
    """Everything `pack` is told."""

    vocab_size: PositiveInt
    """Tokens of the vocabulary, the special ones included."""

    block: PositiveInt
    """Tokens of a diffusion block: each split is padded to a multiple of it."""

    given_tokenizer: str = ""
    """A `tokenizer.json` to use as it is; empty: learn one from the training documents."""

    tokenizer_bytes: PositiveInt = 100_000_000
    """Text the tokenizer learns from at most, in the order of the documents."""

    max_concepts: PositiveInt = Field(default=16, le=16)
    """Concepts kept for a chunk, those of the highest score; batches have 16 places."""

    shard_tokens: PositiveInt = 1 << 28
    """Tokens of a shard at most. A longer stream is cut between spans and gets span records beside
    each shard, so that training never loads the span table. The cut changes no batch."""


class LiftConfig(Config):
    """Everything `lift` is told."""

    min_support: PositiveInt
    """Training chunks of the concept that a word occurs in, at the least."""

    max_words: PositiveInt = 50
    """Words kept for a concept."""

    prior_chunks: PositiveFloat = 10.0
    """Weight of the corpus-wide rate of a word, in chunks: what little evidence shrinks towards."""

    deviations: PositiveFloat = 1.96
    """The log-odds are the lower end of an interval of so many standard deviations."""

    min_letters: PositiveInt = 3
    """Letters that a token needs to tell a reader anything."""

    @model_validator(mode="after")
    def _support_is_reachable(self) -> Self:
        if self.min_support < 2:
            raise ValueError(
                f"min_support is {self.min_support}: one chunk lifts all its words; try 3"
            )
        return self
