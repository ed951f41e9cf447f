"""Config of generation: how many tokens, and how they are chosen (paper §5).

No torch here.
"""

from typing import Annotated

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from model.config import Config


class SamplingConfig(Config):
    """How a continuation is drawn. The defaults are greedy."""

    n_new: PositiveInt
    """Most tokens to generate; a stop token ends the text earlier."""

    temperature: NonNegativeFloat = 0.0
    """0 takes the most likely token."""

    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """Draw from the fewest tokens that hold this much of the probability."""

    repetition_penalty: Annotated[float, Field(ge=1.0)] = 1.0
    """Divides positive logits of tokens generated before, and multiplies negative ones. Neither
    the prompt nor special tokens count, and the order of positions is chosen without it."""

    seed: NonNegativeInt = 0
