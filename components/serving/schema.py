"""Bodies of requests and answers that only the server has; the others are `explaining.schema`."""

from pydantic import Field, NonNegativeInt, PositiveInt

from components.explaining.requests import ExplainOptions, GenerateRequest, Wish
from components.explaining.schema import ConceptFound, Explanation, Generation, Steered
from components.serving.config import Limits
from model.config import Config

Answer = Generation | Explanation | Steered


class ExplainRequest(Config):
    """A text to continue, and how closely to look at it."""

    request: GenerateRequest
    options: ExplainOptions = ExplainOptions()


class SteerRequest(Config):
    """A text to continue twice: as it comes, and with the wishes granted."""

    request: GenerateRequest
    wishes: tuple[Wish, ...] = Field(min_length=1)
    options: ExplainOptions = ExplainOptions()


Asked = GenerateRequest | ExplainRequest | SteerRequest


class ConceptsFound(Config):
    """Concepts that fit a query, the best first."""

    query: str
    concepts: tuple[ConceptFound, ...]


class Loaded(Config):
    """What the server answers from."""

    checkpoint: str
    """Digest of the checkpoint."""

    max_length_tokens: PositiveInt
    n_known: NonNegativeInt
    n_unknown: NonNegativeInt
    n_index_chunks: NonNegativeInt
    """0: there is no index, and explanations have no training data."""

    n_unknown_named: NonNegativeInt
    """Unknown concepts that have a name which holds."""


class Health(Config):
    """Answer of /healthz: 200 while it takes requests, 503 once it is ending."""

    is_ready: bool
    loaded: Loaded
    limits: Limits
    n_waiting: NonNegativeInt
    n_running: NonNegativeInt
    asks_for_token: bool
    keeps: bool
