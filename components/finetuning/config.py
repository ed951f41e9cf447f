"""Config of the fine-tuning stage."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from components.cutting_config import CutConfig
from components.launch import RanksConfig
from model.config import Config
from model.train_config import AlphaConfig, NoiseConfig, ObjectiveConfig, TrainingConfig
from model.zero_config import ZeroConfig

ANSWER_OBJECTIVE = ObjectiveConfig(
    reduction="block_mean",
    concept_weight=0.5,
    reconstruction_weight=0.5,
    independence_weight=0.5,
    independence="two_term",
    residual_dropout=0.3,
    alpha_known=AlphaConfig(first=0.0, last=0.0),
    alpha_unknown=AlphaConfig(first=0.0, last=0.0),
    sparse_from=0.0,
)
"""Mid-training's, with the concept terms at half: they keep what is there. The paper leaves the
weights open; 0.1 to 1 is sensible. Each block counts alike, short answers as much as long ones."""

ANSWER_NOISE = NoiseConfig(kind="uniform", low=0.05, high=0.95)


class FinetuneConfig(Config):
    """How a checkpoint learns to answer. `training.objective` and `.noise` are usually the above.

    `training.n_tokens` counts whole sequences, prompts and padding included.
    """

    HOW: ClassVar[tuple[str, ...]] = (
        "ranks",
        "zero",
        *(f"training.{name}" for name in TrainingConfig.HOW),
    )

    training: TrainingConfig

    cutting: CutConfig
    """How answers are cut into chunks; what Atlas cut documents by, with the annotator's encoder.
    Chunks under its least length get no labels."""

    chat_rows: Literal["related", "kept"] = "related"
    """Where the rows of the chat tokens start: as those of related special tokens, or as they are
    in a checkpoint that was fine-tuned before."""

    trained_eos: PositiveInt = 2
    """EOS tokens behind an answer that are asked for; the rest of its last block is only hidden."""

    valid_share: Annotated[float, Field(gt=0.0, lt=0.5)] = 0.1
    """Share of the conversations held out, by the hash of their ids."""

    ranks: RanksConfig = RanksConfig()
    zero: ZeroConfig = ZeroConfig()
    validation_sequences: PositiveInt = 64
    """Held-out answers the loss is measured on while training, and all else before and after."""

    alignment_tokens: PositiveInt = 20
    """Top tokens of a concept that the judge reads."""

    alignment_concepts: PositiveInt = 200
    """Concepts judged, evenly spread over the library."""

    bootstrap_draws: PositiveInt = Field(default=1000, ge=1000)

    @model_validator(mode="after")
    def _fits_conversations(self) -> Self:
        share = self.training.noise.clean_prefix
        if share:
            raise ValueError(
                f"noise.clean_prefix is {share}, but a prompt is whole in every sequence and the "
                f"blocks of an answer are what is asked for; set it to 0"
            )
        if self.training.interleaving is not None:
            raise ValueError(
                "training.interleaving is set, but conversations have no lifted words to steer "
                "towards; leave it to mid-training and set it to null here"
            )
        return self
