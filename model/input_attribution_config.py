"""Config of input attribution: how exact it must be, and what it may cost (paper §6.1.1).

No torch here.
"""

from typing import Self

from pydantic import PositiveFloat, PositiveInt, model_validator

from model.config import Config

_LEAST_PANELS = 8
"""Fewer say too little about a path for its completeness to be trusted."""


class InputAttributionConfig(Config):
    """How a logit is shared out among the input positions."""

    n_parts: PositiveInt = 1
    """1: all inputs move together from [MASK], and the weights add up to the whole effect. More:
    the inputs are dealt into so many parts, and each moves alone; the weights then foretell what
    masking a token costs."""

    tolerance: PositiveFloat = 0.02
    """Completeness error |Σ A − gap| / |gap| at which a target is done."""

    max_evaluations: PositiveInt = 64
    """Most points of the paths of one target: each a pass with its gradient (two if guided)."""

    batch_sequences: PositiveInt = 32
    """Sequences that run together: memory grows with it, results do not change."""

    @property
    def panels(self) -> tuple[int, int]:
        """Panels of each part's path to begin with, and the most; halved in between."""
        most = (self.max_evaluations - 1) // self.n_parts
        first = most
        while first >= 2 * _LEAST_PANELS:
            first //= 2
        return first, most

    @model_validator(mode="after")
    def _a_panel_for_each_part(self) -> Self:
        if self.panels[1] < 1:
            raise ValueError(
                f"max_evaluations is {self.max_evaluations}, but {self.n_parts} parts need one "
                f"pass each and one for the text as it is; allow {self.n_parts + 1} or more"
            )
        return self
