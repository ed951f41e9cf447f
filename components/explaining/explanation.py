"""Why each generated chunk was written: inputs, concepts, training text (paper §6.1)."""

from components.explaining.opened import Opened
from components.explaining.schema import ExplainOptions, Explanation, GenerateRequest


def explain(opened: Opened, request: GenerateRequest, options: ExplainOptions) -> Explanation:
    """Continue a prompt and account for every token of it. Raises ValueError."""
    raise NotImplementedError
