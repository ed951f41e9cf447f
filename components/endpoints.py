"""Which language model a stage asks, as part of its config."""

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from model.config import Config


class LocalModel(Config):
    """SmolLM2-135M-Instruct out of its package, served on this machine while it is needed."""

    kind: Literal["local"] = "local"
    n_workers: PositiveInt = 2
    """Servers of one thread each: as many as there are cores. Which one answers a prompt depends
    on the prompt's place alone."""

    n_context: PositiveInt = 2048
    """Tokens of prompt and answer together."""

    max_attempts: PositiveInt = 3
    timeout_seconds: PositiveFloat = 120.0

    @property
    def name(self) -> str:
        return "SmolLM2-135M-Instruct-Q4_1"


class RemoteModel(Config):
    """Any OpenAI-compatible endpoint: vLLM in a cluster, a hosted model."""

    kind: Literal["remote"] = "remote"
    base_url: str
    """Ends in `/v1` for most servers."""

    name: str
    """What the endpoint calls the model."""

    api_key_variable: str = ""
    """Name of the environment variable that holds the key; empty: the endpoint wants none."""

    has_completions: bool = False
    """Whether it serves `/completions`; if not, few-shot prompts are sent as chat turns."""

    n_concurrent: PositiveInt = 8
    max_attempts: PositiveInt = 6
    timeout_seconds: PositiveFloat = 120.0


LanguageModelEndpoint = Annotated[LocalModel | RemoteModel, Field(discriminator="kind")]
