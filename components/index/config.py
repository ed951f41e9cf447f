"""Config of the index stage (paper §6.1.3, B.1)."""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from model.config import Config


class BuildConfig(Config):
    """How the index is laid out, and how the transducer into its space is fitted."""

    exact_up_to: PositiveInt = 20_000
    """Vectors that are compared one by one; above, inverted lists limit the comparisons."""

    least_recall: Annotated[float, Field(gt=0.0, le=1.0)] = 0.97
    """Share of the ten true neighbours that inverted lists must find: lists are probed until so."""

    recall_queries: PositiveInt = 200
    """Indexed vectors asked to measure the recall against exact search."""

    length: PositiveInt
    """Tokens of the windows in which the network reads chunks; at most its own length."""

    n_fitted: PositiveInt = 2_000
    """Training chunks whose states the transducer learns from."""

    n_held_back: PositiveInt = 300
    """Indexed chunks it never learns from: they must find themselves among all."""

    n_held_out: PositiveInt = 300
    """Chunks of held-out text, for the cosine with their own vector."""

    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """While the network reads chunks: `auto` takes bfloat16 where the processor multiplies in it.
    Means over a hundred tokens do not notice."""

    mask_rate: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.5
    """Share of tokens masked for the second state of a chunk, as in generation."""

    hidden_width: PositiveInt = 512
    n_steps: PositiveInt = 400
    batch_pairs: PositiveInt = 256
    lr: PositiveFloat = 1e-3

    contrast: NonNegativeFloat = 0.1
    """Weight of the contrastive term beside 1 − cosine."""

    batch_sequences: PositiveInt = 16
    bootstrap_draws: PositiveInt = 1_000
    seed: NonNegativeInt = 0
