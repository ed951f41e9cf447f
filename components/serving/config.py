"""Config of the server: where it listens, how much it takes on, and what it refuses.

No secret stands here: a token is given as a reference, to a file or to an environment variable.
"""

from typing import Annotated

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from model.config import Config

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Limits(Config):
    """What one request may ask for. Every refusal says the value, the limit and the way out."""

    body_bytes: PositiveInt = 256 * 1024
    body_seconds: PositiveFloat = 10.0
    """A body that has not arrived by then is given up."""

    prompt_chars: PositiveInt = 20_000
    new_tokens: PositiveInt = 1024
    wishes: PositiveInt = 8
    """Concepts changed at once."""

    input_passes: PositiveInt = 4096
    """Of an explanation: targets of input attribution × evaluations of each."""

    listed: PositiveInt = 128
    """Concepts or sources listed of a chunk or a token."""

    draws: PositiveInt = 10_000
    """Resamples behind an interval."""

    answer_seconds: PositiveFloat = 120.0
    """From the end of the request to the end of its answer, waiting included."""


class ServeConfig(Config):
    """How the server runs. The defaults are for one person on one machine."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8000
    """0 takes a free one."""

    hosts: tuple[str, ...] = LOOPBACK
    """Names it may be called by (the Host header), so that no foreign page can be pointed at it;
    "*" stands for any, for a server behind a proxy that checks them."""

    queue_length: PositiveInt = 64
    """Requests that wait, beyond those that run."""

    batch_size: PositiveInt = 16
    batch_wait_seconds: NonNegativeFloat = 0.005
    """How long the first request of a batch waits for companions."""

    shutdown_seconds: PositiveFloat = 30.0
    """On SIGTERM: how long running requests may take to end."""

    token_reference: str = ""
    """`file:PATH` or `env:NAME`; empty: no token is asked for."""

    keep: str = ""
    """Folder for explanations; empty: none is kept."""

    limits: Limits = Limits()
