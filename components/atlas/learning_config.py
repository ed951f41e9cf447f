"""What the annotator is told: how it is trained, calibrated and compared."""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from model.config import Config

Share = Annotated[float, Field(gt=0.0, le=1.0)]


class HeadConfig(Config):
    """Training of the head over vectors of a frozen encoder."""

    seed: NonNegativeInt = 0
    head: Literal["linear", "bi_encoder"] = "linear"
    n_steps: PositiveInt = 150
    lr: PositiveFloat = 0.01
    n_unlabelled: PositiveInt = 512
    """Chunks of the corpus drawn a step as unlabelled ones; all of them where there are no more."""

    n_sampled: PositiveInt = Field(default=256, ge=64)
    """Concepts drawn a step, on which every chunk of it is scored beside those that it carries."""

    n_tagged: PositiveInt = 4_096
    """Tagged chunks of a step, at most."""

    anchor: NonNegativeFloat = 30.0
    """How many tagged chunks a concept's card is worth: the weight, divided by the number of tagged
    chunks, of the squared distance of its direction from the card."""


class FineTuneConfig(Config):
    """Training of the encoder itself, together with the concepts' vectors."""

    base: str = "sentence-transformers/all-MiniLM-L6-v2"
    """A sentence-transformers model, by name or by path."""

    seed: NonNegativeInt = 0
    n_sampled: PositiveInt = Field(default=256, ge=64)
    n_steps: PositiveInt = 500
    batch_chunks: PositiveInt = 16
    """Tagged chunks of a step, and as many unlabelled ones."""

    lr: PositiveFloat = 2e-5
    head_lr: PositiveFloat = 1e-3


class LearnConfig(HeadConfig):
    """Three annotators fitted to the tagged sample; the best on held-out chunks is kept."""

    encoder: Literal["frozen", "fine_tuned"] = "frozen"
    """Fine-tuned: the trained annotator takes vectors of an encoder that learned as well."""

    fine_tuning: FineTuneConfig = FineTuneConfig()

    n_neighbours: PositiveInt = 32
    max_labels: PositiveInt = Field(default=16, le=16)

    n_pool: PositiveInt = 100_000
    """Chunks that stand for the corpus: unlabelled ones and those that thresholds are set on."""

    under_reported: PositiveFloat = 1.5
    """A concept's prevalence is taken as its share of tagged chunks times this: taggers miss."""

    min_prevalence: Share = 0.015
    max_prevalence: Share = 0.5
    """Bounds of the prior, and of the prevalence that thresholds are calibrated to."""

    bootstrap_draws: PositiveInt = 1_000
