"""Config of the steering stage (paper §6.2, appendix M)."""

from typing import Literal, Self

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from components.judging_config import LanguageModelJudgeConfig
from model.config import Config
from model.sampling_config import SamplingConfig
from model.steering_config import InjectionConfig


class SafetyConfig(Config):
    """A group of concepts suppressed wherever it would come up (method §4.7)."""

    about: str
    """The group: the concepts whose cards are nearest to this, by the annotator's encoder."""

    n_members: PositiveInt = 5
    n_prompts: PositiveInt = 24
    """Prompts that begin chunks labelled with a member."""

    strength: PositiveFloat


class ResponseConfig(Config):
    """Steering by an example: the concepts that a target text has are amplified (method §4.7)."""

    n_targets: PositiveInt = 24
    """Held-out documents; their openings are prompts, what follows in another is the target."""

    n_concepts: PositiveInt = 4
    """Concepts taken from a target, those the annotator is surest of."""

    strength: PositiveFloat


class SteerConfig(Config):
    """Which concepts are steered, how strongly, and over how much text."""

    n_concepts: PositiveInt = 12
    """Spread evenly over the prevalences of the concepts that can be judged by their words."""

    strengths: tuple[float, ...] = (0.0, 8.0, 16.0)
    """τ, a shift of the concept's top token in logits: 0 is the control."""

    suppressions: tuple[PositiveFloat, ...] = (4.0, 8.0)
    """τ of suppression, whose mask is felt long before an injection is."""

    strengths_before: tuple[float, ...] = (8.0, 16.0)
    """Those that amplify the pretrained network too, which saw no steering in training."""

    n_neutral: PositiveInt = 2
    """Prompts that are openings of held-out documents, the same for every concept: amplified."""

    n_about: PositiveInt = 2
    """Prompts that begin chunks labelled with the concept: something is there to suppress."""

    prompt_tokens: PositiveInt = 16
    """All prompts have this length."""

    asking: str = "We are discussing {name}: {description}"
    """What stands before a neutral prompt where a concept is asked for and not steered."""

    asking_tokens: PositiveInt = 48
    """Most tokens of it; a longer description is cut."""

    amplify: InjectionConfig = InjectionConfig()
    suppress: InjectionConfig = InjectionConfig(after=0.5)
    min_words: PositiveInt = 5
    """Lifted words a concept needs to be judged by them."""

    judge: LanguageModelJudgeConfig | None = None
    """A language model that rates concept and quality from 0 to 2; None: nobody is asked."""

    safety: SafetyConfig | None = None
    response: ResponseConfig | None = None
    sampling: SamplingConfig
    dtype: Literal["auto", "float32", "bfloat16"] = Field(default="auto")
    """In which networks write and read; `auto` takes bfloat16 where the processor multiplies it."""

    batch_rows: PositiveInt = 128
    bootstrap_draws: PositiveInt = 1_000
    seed: NonNegativeInt = 0

    @model_validator(mode="after")
    def _strengths_fit(self) -> Self:
        if 0.0 not in self.strengths or min(self.strengths) < 0.0 or len(self.strengths) < 2:
            raise ValueError(
                f"strengths are {self.strengths}: give 0, the control, and some above it"
            )
        if not self.suppressions:
            raise ValueError("suppressions are empty; give at least one strength to suppress by")
        outside = set(self.strengths_before) - set(self.strengths) | {0.0} & set(
            self.strengths_before
        )
        if outside:
            raise ValueError(
                f"strengths_before has {sorted(outside)}: give some of {self.strengths} above 0, "
                f"so that before and after can be compared"
            )
        return self

    @property
    def rising(self) -> list[float]:
        """The strengths above 0 that amplify."""
        return sorted(set(self.strengths) - {0.0})

    @property
    def lowering(self) -> list[float]:
        """The strengths that suppress, the weakest first."""
        return sorted(set(self.suppressions))
