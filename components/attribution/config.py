"""Config of the attribution stage (paper §6.1)."""

from typing import Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from model.config import Config
from model.input_attribution_config import InputAttributionConfig
from model.sampling_config import SamplingConfig


class MaskingConfig(Config):
    """How the attribution of inputs is tested: by masking them."""

    targets: PositiveInt = 2
    """Tokens of each text whose inputs are masked."""

    counts: tuple[PositiveInt, ...] = Field((1, 2, 3, 5, 10), min_length=1)
    """Inputs masked together, or left alone: the points of the curves."""

    random_orders: PositiveInt = 5
    """Orders drawn for each token, which say what masking any inputs would do."""

    in_parts: InputAttributionConfig = InputAttributionConfig(n_parts=9)
    """The attribution that is made to foretell what masking one input does."""


class RemovalConfig(Config):
    """How contributions of concepts are tested: by removing concepts."""

    targets: PositiveInt = 12
    """Tokens of each text whose concepts are removed, evenly spread over it."""

    concepts: PositiveInt = 3
    """Known and unknown ones removed from each, of those it kept; and one of each it did not."""

    n_likeliest: PositiveInt = 50
    """Tokens whose logits are foretold, to foretell a log-probability."""

    upstream: PositiveInt = 2
    """Known and unknown ones of each text whose parts are also taken out of earlier states."""

    upstream_targets: PositiveInt = 4
    """Tokens of each text that are replayed without them."""


class AttributeConfig(Config):
    """What is generated, and how finely it is explained."""

    n_prompts: PositiveInt = 10
    """Openings of held-out documents, domains in turn."""

    prompt_tokens_least: PositiveInt = 24
    prompt_tokens_most: PositiveInt = 48
    sampling: SamplingConfig

    top_concepts: PositiveInt = 5
    """Known, and as many unknown, listed for each token; the others are summed up in one row."""

    top_chunk_concepts: PositiveInt = 10
    """Known, and as many unknown, listed for each chunk."""

    top_inputs: PositiveInt = 8
    """Input positions listed for each explained token."""

    top_sources: PositiveInt = 5
    """Training chunks listed for each generated chunk."""

    input_targets: PositiveInt = 8
    """Tokens of each text whose inputs are attributed, evenly spread over the order of commits."""

    inputs: InputAttributionConfig = InputAttributionConfig()
    masking: MaskingConfig = MaskingConfig()
    removal: RemovalConfig = RemovalConfig()
    seed: NonNegativeInt = 0

    @model_validator(mode="after")
    def _lengths_fit(self) -> Self:
        if self.prompt_tokens_least > self.prompt_tokens_most:
            raise ValueError(
                f"prompt_tokens_least is {self.prompt_tokens_least}, above prompt_tokens_most "
                f"{self.prompt_tokens_most}; swap them"
            )
        return self
