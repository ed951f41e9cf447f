"""Config of the mid-training stage."""

from typing import ClassVar, Self

from pydantic import PositiveFloat, PositiveInt, model_validator

from components.data_config import DataConfig
from components.launch import RanksConfig
from model.config import Config
from model.train_config import AlphaConfig, NoiseConfig, ObjectiveConfig, TrainingConfig
from model.zero_config import ZeroConfig

OBJECTIVE = ObjectiveConfig(
    independence="two_term",
    residual_dropout=0.3,
    alpha_known=AlphaConfig(first=0.5, last=0.0),
    alpha_unknown=AlphaConfig(first=0.0, last=0.0),
    sparse_from=0.0,
)
"""The paper's: teacher forcing runs out, the penalty has two terms, the residual is dropped more
often; both heads keep their top-k, as they will in use (§10.2)."""

NOISE = NoiseConfig(kind="uniform")


class MidtrainConfig(Config):
    """How a checkpoint goes on. `training.objective` and `.noise` are usually the two above."""

    HOW: ClassVar[tuple[str, ...]] = (
        "ranks",
        "zero",
        *(f"training.{name}" for name in TrainingConfig.HOW),
        *(f"data.{name}" for name in DataConfig.HOW),
    )

    training: TrainingConfig
    """`interleaving` says which steps steer; without it none does."""

    domain_weights: dict[str, PositiveFloat]
    """Share of each domain in every batch; they need not sum to 1. Code and reasoning were raised
    in the paper's mixture. Empty: the corpus as it is."""

    data: DataConfig = DataConfig()
    """Where batches come from, if not from the stage's tokens alone."""

    ranks: RanksConfig = RanksConfig()
    zero: ZeroConfig = ZeroConfig()
    validation_sequences: PositiveInt = 32

    @model_validator(mode="after")
    def _forcing_ends(self) -> Self:
        last = self.training.objective.alpha_known.last
        if last:
            raise ValueError(
                f"mid-training ends teacher forcing, but alpha_known.last is {last}; set it to 0"
            )
        return self

    @model_validator(mode="after")
    def _batches_can_be_made(self) -> Self:
        self.data.refuse_two_mixtures(self.domain_weights)
        self.data.refuse_uneven(
            batch_sequences=self.training.batch_sequences, ranks=self.ranks.ranks
        )
        return self
