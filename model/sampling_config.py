"""Config of generation: how many tokens, and how they are chosen (paper §5).

No torch here.
"""

from typing import Annotated, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, model_validator

from model.config import Config


class EntropyConfig(Config):
    """Temperature by how undecided the network is: cold where it is sure, warm where it is not.

    It is multiplied by `low` + (`high` − `low`) · min(1, H / ln k): H the entropy, k one more than
    the tokens that hold `top_p` of the probability, and at least 2.
    """

    low: PositiveFloat = 0.3
    high: PositiveFloat = 0.7

    @model_validator(mode="after")
    def _rises(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"low is {self.low}, above high {self.high}; swap them")
        return self


class SamplingConfig(Config):
    """How a continuation is drawn. The defaults are greedy, one token a forward pass."""

    n_new: NonNegativeInt
    """Most tokens to generate behind the prompt; a stop token ends the text earlier. 0 is for a
    prompt with masks in it, which are filled."""

    temperature: NonNegativeFloat = 0.0
    """0 takes the most likely token."""

    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """Draw from the fewest tokens that hold this much of the probability."""

    entropy: EntropyConfig | None = None
    """None: the same temperature for every token."""

    threshold: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    """Commit every masked token of the block whose largest probability reaches this, and always
    the most certain one. None: that one alone. The AR families write one at a time anyway."""

    repetition_penalty: Annotated[float, Field(ge=1.0)] = 1.0
    """Divides positive logits of tokens generated before, and multiplies negative ones. Neither
    the prompt nor special tokens count, and the order of positions is chosen without it."""

    guidance: Annotated[float, Field(ge=0.0, le=100.0)] = 0.0
    """s: logits are u + (s + 1)(c − u), where u is what the network says without the prompt. Above
    100, u decides alone, and logits leave what float32 holds."""

    top_concepts: NonNegativeInt = 0
    """Concepts of either head recorded for each token; 0 asks no head."""

    seed: Annotated[int, Field(ge=0, lt=2**64)] = 0
