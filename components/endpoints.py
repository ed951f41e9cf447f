"""Which language model a stage asks, as part of its config, and what its answers cost."""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from model.config import Config


class LocalModel(Config):
    """SmolLM2-135M-Instruct out of its package, served on this machine while it is needed."""

    kind: Literal["local"] = "local"
    n_workers: PositiveInt = 2
    """Servers of one thread each: as many as there are cores. An answer depends on its prompt
    alone, whichever worker gives it (smollm2.py)."""

    n_context: PositiveInt = 2048
    """Tokens of prompt and answer together."""

    max_attempts: PositiveInt = 3
    timeout_seconds: PositiveFloat = 120.0
    longest_wait_seconds: PositiveFloat = 60.0

    @property
    def name(self) -> str:
        return "SmolLM2-135M-Instruct-Q4_1"

    def cost_usd(self, n_prompt_tokens: int, n_completion_tokens: int) -> float:
        """Nothing: it runs here."""
        return 0.0


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

    obeys_schemas: bool = True
    """Whether it takes a JSON schema; if not, the schema stands in the system prompt."""

    limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """What the endpoint calls the longest answer: hosted models differ."""

    n_concurrent: PositiveInt = 8
    requests_per_minute: PositiveInt | None = None
    """The endpoint's limit for one process of ours; None: it has none."""

    tokens_per_minute: PositiveInt | None = None
    """The same for tokens, of prompts and answers together."""

    max_attempts: PositiveInt = 6
    timeout_seconds: PositiveFloat = 120.0
    longest_wait_seconds: PositiveFloat = 600.0
    """An endpoint that asks for a longer pause ends the run; what was answered is kept."""

    usd_per_million_prompt_tokens: NonNegativeFloat = 0.0
    usd_per_million_completion_tokens: NonNegativeFloat = 0.0

    def cost_usd(self, n_prompt_tokens: int, n_completion_tokens: int) -> float:
        """The price of so many tokens."""
        prompts = n_prompt_tokens * self.usd_per_million_prompt_tokens
        return (prompts + n_completion_tokens * self.usd_per_million_completion_tokens) / 1e6


LanguageModelEndpoint = Annotated[LocalModel | RemoteModel, Field(discriminator="kind")]
