"""Config of the training stage."""

from typing import Literal

from pydantic import PositiveInt

from components.launch import RanksConfig
from model.config import Config, NetworkConfig
from model.train_config import TrainingConfig


class TrainConfig(Config):
    """Which network, how trained, on how many ranks."""

    network: NetworkConfig
    training: TrainingConfig
    ranks: RanksConfig = RanksConfig()

    zero_stage: Literal[1, 2, 3] = 1
    """What DeepSpeed splits over the ranks: optimiser states, gradients, weights."""

    validation_sequences: PositiveInt = 32
    """Held-out sequences the loss is measured on while training."""
