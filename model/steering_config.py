"""Config of one way to steer: at which layers, which positions and how long (paper §6.2).

No torch here.
"""

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from model.config import Config


class InjectionConfig(Config):
    """Where a direction is added, for any depth of network."""

    after: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.25
    """The layer at this share of the depth is the first."""

    layers: Literal["one", "onward"] = "one"
    """That layer alone, or it and all behind it, where additions pile up."""

    positions: Literal["masked", "generated", "all"] = "masked"
    first_tokens: PositiveInt | None = None
    """Off once a row has written so many tokens; None: never."""

    def at(self, n_layers: int) -> int | tuple[int, ...]:
        """The layers, as `model.steering.Change` takes them."""
        first = int(self.after * n_layers)
        return first if self.layers == "onward" else (first,)
