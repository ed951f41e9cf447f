"""Config of the attribution stage (paper §6.1)."""

from typing import Self

from pydantic import NonNegativeInt, PositiveInt, model_validator

from model.config import Config
from model.sampling_config import SamplingConfig


class AttributeConfig(Config):
    """What is generated, and how finely it is explained."""

    n_prompts: PositiveInt = 10
    """Openings of held-out documents, domains in turn."""

    prompt_tokens_least: PositiveInt = 24
    prompt_tokens_most: PositiveInt = 48
    sampling: SamplingConfig

    top_concepts: PositiveInt = 5
    """Known concepts listed for each token; the others are summed up in one row."""

    top_inputs: PositiveInt = 8
    """Input positions listed for each explained token."""

    top_sources: PositiveInt = 5
    """Training chunks listed for each generated chunk."""

    input_targets: PositiveInt = 12
    """Tokens of each text whose inputs are attributed, evenly spread over the order of commits."""

    n_nodes: PositiveInt = 16
    """Gauss–Legendre nodes of the integral: gradients taken for each target."""

    batch_sequences: PositiveInt = 32
    seed: NonNegativeInt = 0

    @model_validator(mode="after")
    def _lengths_fit(self) -> Self:
        if self.prompt_tokens_least > self.prompt_tokens_most:
            raise ValueError(
                f"prompt_tokens_least is {self.prompt_tokens_least}, above prompt_tokens_most "
                f"{self.prompt_tokens_most}; swap them"
            )
        return self
