"""Config of the index stage (paper §6.1.3, B.1)."""

from typing import Literal

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from components.nearest_config import LayoutConfig
from model.config import Config


class BuildConfig(Config):
    """How the index is laid out, and how the transducer into its space is fitted."""

    layout: LayoutConfig = LayoutConfig()

    length: PositiveInt
    """Tokens of the windows in which the network reads chunks; at most its own length."""

    n_fitted: PositiveInt = 4_000
    """States of training chunks that the transducer learns from; most chunks have two."""

    n_held_back: PositiveInt = 300
    """Indexed chunks it never learns from: they must find themselves among all."""

    n_held_out: PositiveInt = 300
    """Chunks of held-out text, for the cosine with their own vector."""

    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """While the network reads chunks: `auto` takes bfloat16 where the processor multiplies in it.
    Means over a hundred tokens do not notice."""

    hidden_width: PositiveInt = 512
    n_steps: PositiveInt = 400
    batch_pairs: PositiveInt = 256
    lr: PositiveFloat = 1e-3

    contrast: NonNegativeFloat = 1.0
    """Weight of the contrastive term beside 1 − cosine. On demo, with 0.1 a chunk is found among
    ten two thirds as often, and the cosines are 0.4 instead of 0.28."""

    n_verbatim: PositiveInt = 150
    """Indexed chunks that are asked for by their own text, and by the middle half of it."""

    overlap_up_to: NonNegativeInt = 200_000
    """Rows among which chunks are also asked for by the tokens they share, to compare; with more
    rows that is left out, since it needs the tokens of all."""

    batch_sequences: PositiveInt = 16
    bootstrap_draws: PositiveInt = 1_000
    seed: NonNegativeInt = 0
