"""How texts are cut into chunks: what Atlas does to documents, and fine-tuning to answers."""

from typing import Self

from pydantic import PositiveInt, model_validator

from model.config import Config


class CutConfig(Config):
    """Where a chunk ends. Lengths are word pieces of the encoder."""

    encoder: str
    """Whose word pieces are counted; the encoder that will embed the chunks."""

    target_min: PositiveInt = 96
    target_max: PositiveInt = 128
    """A chunk of this length takes no more, whatever follows."""

    hard_max: PositiveInt = 256
    """No chunk is longer."""

    min_wordpieces: PositiveInt = 16
    """A shorter piece joins a neighbour: a heading what follows, a tail what was before."""

    max_chars_per_wordpiece: PositiveInt = 8
    """Text with fewer pieces than this counts by its characters: encoders skip what is junk."""

    @model_validator(mode="after")
    def _lengths_rise(self) -> Self:
        lengths = (self.min_wordpieces, self.target_min, self.target_max, self.hard_max)
        if list(lengths) != sorted(lengths):
            raise ValueError(
                f"min_wordpieces, target_min, target_max, hard_max are {lengths}, but each must be "
                f"at least the one before it"
            )
        return self
