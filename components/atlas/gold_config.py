"""What an evaluation on a gold set is told."""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from components.atlas.learning_config import LearnConfig
from model.config import Config


class GoldConfig(Config):
    """How texts are split, and what is fitted to the labelled ones."""

    encoder: str
    cards: Literal["described", "name"] = "described"
    """What concepts are known by: name and description, or the name alone."""

    train_share: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.5
    """Of the documents; 0: nothing is learned, and concepts are known by their cards alone."""

    n_train: NonNegativeInt = 0
    """Documents to train on; 0: as the share has it."""

    calibration_share: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.2
    """Of those to train on: held back for choosing an annotator and for its probabilities."""

    labels_per_text: PositiveFloat = 3.0
    """Where nothing is learned: how many concepts a text is taken to carry."""

    learning: LearnConfig = LearnConfig(under_reported=1.0, min_prevalence=1e-4, n_unlabelled=2_048)
    """Nothing is under-reported where people gave all labels."""

    bootstrap_draws: PositiveInt = 300
    seed: NonNegativeInt = 0

    @model_validator(mode="after")
    def _enough_to_choose_by(self) -> "GoldConfig":
        if 0 < self.n_train < 2:
            raise ValueError("n_train is 1, of which none can be held back; train on 2 or more")
        return self
