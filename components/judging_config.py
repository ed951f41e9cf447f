"""Which judge says how well a concept applies to a passage, as part of a stage's config."""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, field_validator

from components.endpoints import LanguageModelEndpoint, LocalModel
from model.config import Config


class EmbeddingJudgeConfig(Config):
    """Cosine of an encoder, made a probability on labels that people gave."""

    kind: Literal["embedding"] = "embedding"
    encoder: str
    """One with an entry in `calibrations.json`: `minilm-int8` or `hashing`."""


class LanguageModelJudgeConfig(Config):
    """A language model that answers 1 to 5 (paper app. C; method A.4)."""

    kind: Literal["language_model"] = "language_model"
    language_model: LanguageModelEndpoint
    max_passage_chars: PositiveInt = 2_000
    max_answer_tokens: PositiveInt = 200
    n_retries: NonNegativeInt = 2
    """Further attempts, with other seeds, at an answer that cannot be read."""

    @field_validator("language_model")
    @classmethod
    def _can_judge(cls, endpoint: LanguageModelEndpoint) -> LanguageModelEndpoint:
        if isinstance(endpoint, LocalModel):
            raise ValueError(
                f"{endpoint.name} cannot judge: on 60 pairs that people labelled its AUC was 0.38, "
                f"worse than a coin (cosine of MiniLM: 0.92); name a remote model, or use the "
                f"judge of kind 'embedding'"
            )
        return endpoint


AnyJudge = Annotated[EmbeddingJudgeConfig | LanguageModelJudgeConfig, Field(discriminator="kind")]
