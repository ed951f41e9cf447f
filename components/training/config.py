"""Config of the training stage."""

from typing import ClassVar, Self

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from components.data_config import DataConfig
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
        *(f"data.{name}" for name in DataConfig.HOW),
    )

    network: NetworkConfig
    training: TrainingConfig
    domain_weights: dict[str, PositiveFloat] = Field(default_factory=dict)
    """Share of each domain in every batch; they need not sum to 1. Empty: the corpus as it is."""

    data: DataConfig = DataConfig()
    """Where batches come from, if not from the stage's tokens alone."""

    ranks: RanksConfig = RanksConfig()

    zero: ZeroConfig = ZeroConfig()

    validation_sequences: PositiveInt = 32
    """Held-out sequences the loss is measured on while training."""

    @model_validator(mode="after")
    def _batches_can_be_made(self) -> Self:
        self.data.refuse_two_mixtures(self.domain_weights)
        self.data.refuse_uneven(
            batch_sequences=self.training.batch_sequences, ranks=self.ranks.ranks
        )
        return self
