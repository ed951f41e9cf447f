"""Config of one run of the harness. No torch here."""

from pathlib import Path

from pydantic import Field, NonNegativeInt, PositiveInt

from model.conditional_config import ConditionalConfig
from model.config import Config


class HarnessConfig(Config):
    """Which tasks, on how many documents, and how likelihoods are found."""

    folder: Path | None
    """Folder of task files (YAML). None: the tasks that the harness knows by name."""

    names: tuple[str, ...]
    """Tasks by name; empty: every one in the folder."""

    limit: PositiveInt | None = None
    """First documents of each task; None: all."""

    likelihood: ConditionalConfig = ConditionalConfig()

    bootstrap_draws: NonNegativeInt = 1000
    """For metrics whose standard error has no formula."""


class Generation(Config):
    """What a task may say about generation, by the harness's names. Anything else is an error."""

    until: tuple[str, ...] = ()
    max_gen_toks: PositiveInt = 256
    do_sample: bool = False
    temperature: float = Field(default=0.0, ge=0.0)
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
