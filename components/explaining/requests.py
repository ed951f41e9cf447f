"""What can be asked of a checkpoint: a text, how much of it is explained, what is to change.

No torch here.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveInt, field_validator, model_validator

from model.config import Config
from model.sampling_config import SamplingConfig

Action = Literal["amplify", "suppress", "replace"]

STRONGEST_LOGITS = 100.0
"""Far above it, every text is one token over and over."""

LONGEST_NAME = 4_000
"""Characters of a concept's name, or of several as a group."""


class GenerateRequest(Config):
    """A text to continue."""

    prompt: str = ""
    """Plain text: a special token that is spelled out in it stays text."""

    prompt_ids: tuple[NonNegativeInt, ...] = ()
    """Token ids instead of text, as they are: for a checkpoint that has no tokenizer."""

    form: Literal["text", "chat"] = "text"
    """`chat`: the prompt is a user's message, and the assistant's answer is generated."""

    sampling: SamplingConfig = SamplingConfig(n_new=64)

    @model_validator(mode="after")
    def _one_prompt(self) -> Self:
        if self.prompt and self.prompt_ids:
            raise ValueError(
                f"a prompt of {len(self.prompt)} characters and one of {len(self.prompt_ids)} "
                f"token ids; give one of them"
            )
        return self


class ExplainOptions(Config):
    """How much of an explanation is made. Zero leaves a part out."""

    top_concepts: PositiveInt = 8
    """Known concepts listed for each chunk, and as many unknown ones."""

    top_token_concepts: NonNegativeInt = 3
    """The same for each token."""

    top_sources: NonNegativeInt = 5
    """Training chunks listed for each generated chunk."""

    input_targets: NonNegativeInt = 16
    """Tokens whose inputs are attributed, over the whole text: at least one a chunk."""

    evaluations: Annotated[int, Field(ge=3)] = 64
    """Most passes through the network for each of them, where fewer do not suffice."""

    draws: PositiveInt = 500
    """Resamples behind each interval."""


class Wish(Config):
    """A change of what the network writes about."""

    concept: str = Field(min_length=1, max_length=LONGEST_NAME)
    """A name whatever its case, an id (`17`, `unknown 17`), or several joined by ` + `."""

    action: Action
    strength_logits: float | None = None
    """Shift of the concept's own top token, 0 to 100. None: as calibrated for this checkpoint."""

    replacement: str = Field(default="", max_length=LONGEST_NAME)
    """What `replace` puts in the concept's place."""

    @field_validator("strength_logits")
    @classmethod
    def _strength_fits(cls, given: float | None) -> float | None:
        if given is not None and not 0.0 <= given <= STRONGEST_LOGITS:
            raise ValueError(
                f"a strength of {given:g}: it is a shift in logits from 0 to "
                f"{STRONGEST_LOGITS:g}, and 4 to 16 is usual; what lowers a concept is suppress"
            )
        return given

    @model_validator(mode="after")
    def _replaces_by_something(self) -> Self:
        if (self.action == "replace") != bool(self.replacement):
            raise ValueError(
                f"the wish to {self.action} {self.concept!r} "
                + (f"has a replacement, {self.replacement!r}; only replace takes one"
                   if self.replacement else "needs a replacement: another concept")
            )  # fmt: skip
        return self
