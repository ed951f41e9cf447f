"""Config of the packaged benchmarks (paper §7, method §7.2). No torch here."""

from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt

from model.conditional_config import ConditionalConfig
from model.config import Config

Benchmark = Literal["hellaswag", "truthfulqa_mc1", "mmlu_dev", "gsm8k", "humaneval"]

ALL: tuple[Benchmark, ...] = ("hellaswag", "truthfulqa_mc1", "mmlu_dev", "gsm8k", "humaneval")


class SandboxConfig(Config):
    """Limits of the child process that runs one generated program."""

    cpu_seconds: PositiveInt = 5
    wall_seconds: PositiveFloat = 10.0

    memory_bytes: PositiveInt = 512 * 2**20
    """Address space, the interpreter included."""

    file_bytes: PositiveInt = 2**20
    open_files: PositiveInt = 32


class CapabilityConfig(Config):
    """Which benchmarks, how many of their questions, and how they are answered."""

    benchmarks: tuple[Benchmark, ...] = Field(default=ALL, min_length=1)

    limit: PositiveInt | None = None
    """First questions of each benchmark; None: all that the package has."""

    likelihood: ConditionalConfig = ConditionalConfig()

    n_new: PositiveInt = 256
    """Most tokens of a written answer; at most half of what the network reads."""

    bootstrap_draws: PositiveInt = Field(default=1000, ge=1000)
    sandbox: SandboxConfig = SandboxConfig()
