"""Config of the steering stage (paper §6.2, appendix M)."""

from typing import Self

from pydantic import NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from model.config import Config
from model.sampling_config import SamplingConfig


class SteerConfig(Config):
    """Which concepts are steered, how strongly, and over how much text."""

    n_concepts: PositiveInt = 12
    """Spread evenly over the prevalences of the concepts that can be judged by their words."""

    strengths: tuple[float, ...] = (0.0, 8.0, 16.0)
    """τ, a shift of the concept's top token in logits; suppression takes them below zero."""

    n_neutral: PositiveInt = 2
    """Prompts that are openings of held-out documents, the same for every concept."""

    n_about: PositiveInt = 2
    """Prompts that begin chunks labelled with the concept: something is there to suppress."""

    prompt_tokens: PositiveInt = 16
    """All prompts have this length, so that they are continued together."""

    amplify_from: PositiveFloat = 0.25
    """Injection starts after this share of the layers."""

    suppress_from: PositiveFloat = 0.5
    min_words: PositiveInt = 5
    """Lifted words a concept needs to be judged by them."""

    sampling: SamplingConfig
    bootstrap_draws: PositiveInt = 1_000
    seed: NonNegativeInt = 0

    @model_validator(mode="after")
    def _strengths_fit(self) -> Self:
        if 0.0 not in self.strengths or min(self.strengths) < 0.0 or len(self.strengths) < 2:
            raise ValueError(
                f"strengths are {self.strengths}: give 0, the control, and some above it"
            )
        if max(self.amplify_from, self.suppress_from) >= 1.0:
            raise ValueError(
                f"injection from {self.amplify_from} and {self.suppress_from} of the layers on "
                f"leaves no layer; give shares below 1"
            )
        return self
