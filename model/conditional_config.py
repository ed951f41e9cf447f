"""Config of conditional log-likelihoods (method §7.3). No torch here."""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from model.config import Config


class ConditionalConfig(Config):
    """How the log-probability of a continuation is found in the diffusion families.

    The AR families have no choice: one forward pass gives it exactly.
    """

    order: Literal["random", "left_to_right"] = "random"
    """`random` averages over the orders in which a block can be unmasked, as it was trained: a
    lower bound, estimated. `left_to_right` is exact for that one order, and asks one row of the
    network for each token."""

    samples: Annotated[int, Field(ge=2, multiple_of=2)] = 16
    """Masks drawn for each block, an even number. A block that has no more masks than this gets
    each of them once, and its value is exact: up to 4 tokens of a continuation at 16."""

    rows: PositiveInt = 32
    """Rows in one forward pass."""

    seed: NonNegativeInt = 0
