"""Config of the registry stage."""

from typing import Annotated, Literal

from pydantic import StringConstraints

from model.config import Config

RegisteredName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
"""Letters, digits, dot, dash and underscore: what a model registry takes."""


class PromoteConfig(Config):
    """Under what name a checkpoint is offered."""

    name: RegisteredName
    alias: Literal["candidate"] = "candidate"
    """A person moves the alias on; a pipeline only ever proposes."""
