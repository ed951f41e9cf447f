"""What independent pieces of work are done by."""

from typing import Literal

from pydantic import NonNegativeFloat, PositiveInt

from model.config import Config


class EngineConfig(Config):
    """An engine, and how many pieces it works on at once."""

    name: Literal["processes", "ray"] = "processes"
    """`processes`: of this machine. `ray`: tasks of the Ray cluster that RAY_ADDRESS names, or of
    one on this machine; needs requirements-ray.txt and folders that all its machines see."""

    n_workers: PositiveInt = 2
    """Pieces at once, one thread each: as many as there are cores."""

    price_per_hour: NonNegativeFloat = 0.0
    """Of one worker; 0: not known, no cost is told."""
