"""When two concepts of two libraries are one. Apart from the method: a command's help needs it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """How much alike two concepts are to be one: either is enough."""

    cosine: float = 0.9
    """Of their centroids."""

    overlap: float = 0.5
    """Tags in common over all their tags."""
