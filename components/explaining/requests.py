"""What can be asked of a checkpoint: a text, how much of it is explained, what is to change.

No torch here.
"""

from typing import Literal, Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from model.config import Config
from model.sampling_config import SamplingConfig

Action = Literal["amplify", "suppress", "replace"]


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
    """Concepts listed for each chunk."""

    top_token_concepts: NonNegativeInt = 3
    """Concepts listed for each token."""

    top_sources: NonNegativeInt = 5
    """Training chunks listed for each generated chunk."""

    input_targets: NonNegativeInt = 24
    """Tokens whose inputs are attributed, over the whole text: at least one a chunk."""

    n_nodes: PositiveInt = 8
    """Gradients of the integral for each of them; more leave a smaller error."""

    draws: PositiveInt = 500
    """Resamples behind each interval."""


class Wish(Config):
    """A change of what the network writes about."""

    concept: str = Field(min_length=1)
    """A name whatever its case, an id (`17`, `unknown 17`), or several joined by ` + `."""

    action: Action
    strength_logits: float | None = Field(default=None, ge=0.0, le=100.0)
    """Shift of the concept's own top token. None: as calibrated for this checkpoint."""

    replacement: str = ""
    """What `replace` puts in the concept's place."""

    @model_validator(mode="after")
    def _replaces_by_something(self) -> Self:
        if (self.action == "replace") != bool(self.replacement):
            raise ValueError(
                f"the wish to {self.action} {self.concept!r} "
                + (f"has a replacement, {self.replacement!r}; only replace takes one"
                   if self.replacement else "needs a replacement: another concept")
            )  # fmt: skip
        return self
