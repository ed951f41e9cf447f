"""Write a text again with concepts changed, and say what that did and what it cost (paper §6.2)."""

from collections.abc import Sequence

from components.explaining.opened import Opened
from components.explaining.schema import ExplainOptions, GenerateRequest, Steered, Wish


def steer(
    opened: Opened, request: GenerateRequest, wishes: Sequence[Wish], options: ExplainOptions
) -> Steered:
    """Both texts, what changed, what it cost. ConceptError: a name that cannot be told."""
    raise NotImplementedError
