"""Config of input attribution: how exact it must be, and what it may cost (paper §6.1.1).

No torch here.
"""

from pydantic import PositiveFloat, PositiveInt

from model.config import Config


class InputAttributionConfig(Config):
    """How a logit is shared out among the input positions."""

    tolerance: PositiveFloat = 0.02
    """Completeness error |Σ A − gap| / |gap| below which a target is done."""

    max_evaluations: PositiveInt = 64
    """Most passes through the network for one target, the two plain ones at the ends included."""

    batch_sequences: PositiveInt = 32
    """Sequences that run together: memory grows with it, results do not change."""
