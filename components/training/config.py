"""Config of the training stage."""

from typing import ClassVar

from pydantic import Field, PositiveFloat, PositiveInt

from components.launch import RanksConfig
from model.config import Config, NetworkConfig
from model.train_config import TrainingConfig
from model.zero_config import ZeroConfig


class TrainConfig(Config):
    """Which network, how trained, on how many ranks."""

    HOW: ClassVar[tuple[str, ...]] = (
        "ranks",
        "zero",
        *(f"training.{name}" for name in TrainingConfig.HOW),
    )

    network: NetworkConfig
    training: TrainingConfig
    domain_weights: dict[str, PositiveFloat] = Field(default_factory=dict)
    """Share of each domain in every batch; they need not sum to 1. Empty: the corpus as it is."""

    ranks: RanksConfig = RanksConfig()

    zero: ZeroConfig = ZeroConfig()

    validation_sequences: PositiveInt = 32
    """Held-out sequences the loss is measured on while training."""
