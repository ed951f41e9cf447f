"""Devices by name: peak, memory, price, and the share of the peak that training reaches.

The numbers are in `hardware.json` beside this file, each with its source. Prices are assumptions:
write your own there, or add a device.
"""

import json
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeFloat, PositiveFloat, TypeAdapter, model_validator

from model.config import Config
from pipelines.recipes import nearest

DEVICES = Path(__file__).with_name("hardware.json")
Share = Annotated[float, Field(gt=0.0, le=1.0)]


class Device(Config):
    """One accelerator, or one core of a processor."""

    summary: str
    peak_flops: PositiveFloat
    """FLOP/s of dense bfloat16 matrix products."""

    peak_source: str
    memory_bytes: PositiveFloat
    usable_memory: Share
    """What is left beside libraries and the allocator's fragments."""

    price_per_hour: NonNegativeFloat
    currency: str
    price_source: str
    utilisation_low: Share
    utilisation_high: Share
    """Share of the peak, by the paper's FLOP convention, that a training run reaches."""

    utilisation_source: str
    measured: bool
    """Whether the utilisation was measured with this code on such a device."""

    devices_per_rank: Literal["one", "threads"]
    """A rank takes one device, or as many as it has threads."""

    @property
    def usable_bytes(self) -> float:
        return self.usable_memory * self.memory_bytes

    @model_validator(mode="after")
    def _range_rises(self) -> Self:
        if self.utilisation_low > self.utilisation_high:
            raise ValueError(
                f"utilisation_low is {self.utilisation_low}, above utilisation_high "
                f"{self.utilisation_high}; swap them in {DEVICES}"
            )
        return self


def devices() -> dict[str, Device]:
    """Every device of the file."""
    return TypeAdapter(dict[str, Device]).validate_python(json.loads(DEVICES.read_text()))


def device(name: str) -> Device:
    """The device of this name. Raises ValueError with the nearest name."""
    known = devices()
    if name not in known:
        raise ValueError(
            f"There is no device {name!r} in {DEVICES}. {nearest(name, sorted(known))}"
        )
    return known[name]
