"""What a long computation tells the outside world while it runs: numbers by step, nothing else."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Event:
    """Progress at one step. Metric names carry their units (`nll_nats`, `tokens_per_second`)."""

    step: int
    total_steps: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    message: str = ""
    """What a person should read, where numbers do not say it."""


Events = Callable[[Event], None]


def ignore(event: Event) -> None:
    """The listener of callers who do not want to know."""
