"""What the annotator is told: how it is trained, calibrated and compared."""

from typing import Annotated

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from model.config import Config

Share = Annotated[float, Field(gt=0.0, le=1.0)]


class LearnConfig(Config):
    """Three annotators fitted to the tagged sample; the best on held-out chunks is kept."""

    seed: NonNegativeInt = 0
    n_steps: PositiveInt = 200
    lr: PositiveFloat = 0.02
    n_unlabelled: PositiveInt = 512
    """Chunks of the corpus drawn a step as unlabelled ones."""

    anchor: NonNegativeFloat = 0.3
    """Weight of the squared distance of a concept's direction from its card."""

    n_neighbours: PositiveInt = 32
    max_labels: PositiveInt = Field(default=16, le=16)

    under_reported: PositiveFloat = 1.5
    """A concept's prevalence is taken as its share of tagged chunks times this: taggers miss."""

    min_prevalence: Share = 0.015
    max_prevalence: Share = 0.1
    """Bounds of the prevalence that thresholds are calibrated to."""
