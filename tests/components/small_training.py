"""Configs of a training run that takes a moment, for the tests of both training stages."""

from components.launch import RanksConfig
from components.training.config import TrainConfig
from model.config import NetworkConfig
from model.train_config import ObjectiveConfig, OptimConfig, TrainingConfig
from tests.components.written_tokens import BLOCK

LENGTH = 4 * BLOCK
N_STEPS = 12


def training(objective: ObjectiveConfig, optim: OptimConfig) -> TrainingConfig:
    return TrainingConfig(
        n_tokens=N_STEPS * 4 * LENGTH,
        batch_sequences=4,
        length=LENGTH,
        dtype="float32",
        optim=optim,
        objective=objective,
        validations=2,
        log_every=4,
    )


def train_config(ranks: int = 1) -> TrainConfig:
    network = NetworkConfig(
        width=16,
        n_layers=2,
        n_heads=2,
        n_kv_heads=1,
        mlp_width=24,
        max_length=LENGTH,
        block=BLOCK,
        rank=3,
    )
    optim = OptimConfig(peak_lr=5e-3, warmup=0.1, decay=0.2)
    return TrainConfig(
        network=network,
        training=training(ObjectiveConfig(), optim),
        ranks=RanksConfig(ranks=ranks, threads=1),
        validation_sequences=6,
    )
