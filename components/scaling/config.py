"""Configs of the scaling study: the ladder, one of its points, the fit (paper §8, appendix G)."""

from typing import Literal, Self

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from model.config import Config, Family, NetworkConfig
from model.estimators import DiffusionEstimator
from model.train_config import NoiseConfig, ObjectiveConfig, OptimConfig


class Size(Config):
    """One rung of the ladder."""

    width: PositiveInt
    n_layers: PositiveInt
    n_heads: PositiveInt
    n_kv_heads: PositiveInt
    mlp_width: PositiveInt

    n_known: NonNegativeInt = 0
    """Concepts that networks of this size learn, the commonest ones; 0: all there are. The whole
    library would outweigh a small backbone (method §3.8)."""

    rank: NonNegativeInt = 0
    """Rank of the unknown concepts at this size; 0: the ladder's."""


class PointTraining(Config):
    """What every run of a ladder shares: optimiser, batch, sequence length (paper §4.1)."""

    length: PositiveInt
    """Tokens of a sequence."""

    block: PositiveInt
    batch_sequences: PositiveInt
    micro_batches: PositiveInt = 1
    optim: OptimConfig
    noise: NoiseConfig = NoiseConfig()
    objective: ObjectiveConfig = ObjectiveConfig()
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    rank: PositiveInt = 32
    """Rank of the factorised unknown concepts."""

    top_k: PositiveInt = 32
    top_k_unknown: PositiveInt = 128


class ScalePoint(Config):
    """One run of a ladder. Its tokens follow from the budget once the data are known."""

    name: str
    family: Family
    size: Size
    budget_flops: PositiveFloat
    seed: NonNegativeInt = 0
    training: PointTraining

    tolerance: float = Field(default=0.15, gt=0.0, lt=1.0)
    """Largest share by which the FLOPs spent may miss the budget. The paper allows 15%."""

    estimators: tuple[DiffusionEstimator, ...] = ("fixed_rate_0.5", "grid_9_rates")
    """Losses to measure at the end, for the diffusion families."""

    evaluation_tokens: PositiveInt = 100_000_000
    """Held-out tokens each loss is measured on, at most all there are. The paper uses 100M."""

    evaluation_batch_sequences: PositiveInt = 16

    def network(self) -> NetworkConfig:
        """The network of this point, but for vocabulary and library."""
        return NetworkConfig(
            family=self.family,
            width=self.size.width,
            n_layers=self.size.n_layers,
            n_heads=self.size.n_heads,
            n_kv_heads=self.size.n_kv_heads,
            mlp_width=self.size.mlp_width,
            max_length=self.training.length,
            block=self.training.block,
            rank=self.size.rank or self.training.rank,
            top_k=self.training.top_k,
            top_k_unknown=self.training.top_k_unknown,
        )


class LadderConfig(Config):
    """A whole ladder: every family at every budget in every size."""

    families: tuple[Family, ...] = Field(min_length=1)
    budgets_flops: tuple[PositiveFloat, ...] = Field(min_length=1)

    concept_budgets_flops: tuple[PositiveFloat, ...] = ()
    """Budgets of the families with concepts, whose module takes much of a small network's FLOPs.
    Empty: the same."""

    sizes: tuple[Size, ...] = Field(min_length=1)

    sizes_per_budget: NonNegativeInt = 0
    """Sizes measured at a budget, those nearest to 20 tokens a parameter; 0: all of them. The paper
    has four to six."""

    seeds: tuple[NonNegativeInt, ...] = (0,)
    training: PointTraining
    estimators: tuple[DiffusionEstimator, ...] = ("fixed_rate_0.5", "grid_9_rates")
    evaluation_tokens: PositiveInt = 100_000_000
    evaluation_batch_sequences: PositiveInt = 16
    tolerance: float = Field(default=0.15, gt=0.0, lt=1.0)

    @model_validator(mode="after")
    def _no_point_twice(self) -> Self:
        for name in ("families", "budgets_flops", "concept_budgets_flops", "sizes", "seeds"):
            values = getattr(self, name)
            repeated = [value for index, value in enumerate(values) if value in values[:index]]
            if repeated:
                raise ValueError(f"{name} names {repeated[0]} twice; a ladder has each point once")
        return self


class FitConfig(Config):
    """How laws are fitted, and how far they may be read."""

    estimator: DiffusionEstimator = "fixed_rate_0.5"
    """Loss that the laws of the diffusion families describe."""

    huber_delta: PositiveFloat = 1e-3
    bootstrap_draws: PositiveInt = 200
    """Resamples of the runs behind each 95% interval."""

    seed: NonNegativeInt = 0

    extrapolate_factors: tuple[PositiveFloat, ...] = (3.0, 10.0)
    """Budgets to predict the loss at, in multiples of the largest one measured."""

    refuse_beyond_factor: PositiveFloat = 30.0
    """A law is not read beyond this multiple of the largest budget measured."""

    @model_validator(mode="after")
    def _extrapolates_within_reason(self) -> Self:
        too_far = [f for f in self.extrapolate_factors if f > self.refuse_beyond_factor]
        if too_far:
            raise ValueError(
                f"extrapolate_factors holds {too_far[0]:g}, beyond the limit of "
                f"{self.refuse_beyond_factor:g} × the largest budget; measure a larger budget, or "
                f"raise refuse_beyond_factor and say so"
            )
        return self
