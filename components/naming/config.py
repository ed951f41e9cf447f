"""Config of the stage that names unknown concepts (method §6.3)."""

from typing import Annotated

from pydantic import Field, NonNegativeInt, PositiveInt, field_validator

from components.endpoints import LanguageModelEndpoint, LocalModel
from components.judging_config import LanguageModelJudgeConfig
from model.config import Config


class LanguageModelNamerConfig(Config):
    """A model that follows instructions and proposes a name and a description."""

    language_model: LanguageModelEndpoint
    n_shown: PositiveInt = 12
    """Activating chunks shown to it, and as many that activate the concept half as much."""

    max_passage_chars: PositiveInt = 600
    max_answer_tokens: PositiveInt = 200

    @field_validator("language_model")
    @classmethod
    def _follows_instructions(cls, endpoint: LanguageModelEndpoint) -> LanguageModelEndpoint:
        if isinstance(endpoint, LocalModel):
            raise ValueError(
                f"{endpoint.name} completes examples and cannot describe what passages share; name "
                f"a remote model, or leave namer out: then phrases of the chunks are tried"
            )
        return endpoint


class NameConfig(Config):
    """How many unknown concepts are named, from how much text, and when a name holds."""

    length: PositiveInt
    """Tokens of the windows in which the network reads; at most its own length."""

    scan_tokens: PositiveInt = 10_000_000
    """Training tokens in which activations are looked for."""

    n_named: PositiveInt = 200
    """Concepts that a name is sought for: those that contribute most to logits."""

    n_activating: PositiveInt = 25
    """Chunks that activate a concept most: so many to find the name, as many others to test it."""

    least_activating: PositiveInt = 8
    """With fewer of either a concept is not tried."""

    n_others: PositiveInt = 50
    """Chunks that activate it little, drawn for either purpose."""

    n_top_tokens: PositiveInt = 25
    """Tokens whose logits it raises most."""

    n_phrases: PositiveInt = 40
    """Phrases of the activating chunks that are tried as names."""

    namer: LanguageModelNamerConfig | None = None
    """None: the phrase that best tells activating chunks from others, by cosine."""

    judge: LanguageModelJudgeConfig | None = None
    """Who tells held-out chunks apart by the name. None: the cosine of their vectors."""

    least_auc: Annotated[float, Field(ge=0.5, lt=1.0)] = 0.75
    """Below it on held-out chunks a concept stays unnamed."""

    batch_sequences: PositiveInt = 16
    bootstrap_draws: PositiveInt = 500
    seed: NonNegativeInt = 0
