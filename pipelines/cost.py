"""What floating-point operations take on some devices: hours and money, as ranges."""

from dataclasses import dataclass

from components.launch import RanksConfig
from model import accounting
from model.zero_config import ZeroConfig
from pipelines.hardware import Device


@dataclass(frozen=True)
class Range:
    """Two ends of an estimate."""

    low: float
    high: float

    def times(self, factor: float) -> "Range":
        return Range(self.low * factor, self.high * factor)

    def __add__(self, other: "Range") -> "Range":
        return Range(self.low + other.low, self.high + other.high)


@dataclass(frozen=True)
class Cost:
    """What some FLOPs take on the devices."""

    flops: float
    """By the paper's convention: everything at every token."""

    device_hours: Range
    wall_hours: Range
    money: Range

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.flops + other.flops, self.device_hours + other.device_hours,
            self.wall_hours + other.wall_hours, self.money + other.money,
        )  # fmt: skip


@dataclass(frozen=True)
class Place:
    """Where an optimisation would run."""

    device: Device
    ranks: RanksConfig
    zero: ZeroConfig

    @property
    def n_devices(self) -> int:
        return self.ranks.ranks * self.devices_per_rank

    @property
    def devices_per_rank(self) -> int:
        return self.ranks.threads if self.device.devices_per_rank == "threads" else 1

    @property
    def usable_bytes(self) -> float:
        return self.device.usable_bytes * self.devices_per_rank

    def cost(self, flops: float) -> Cost:
        low, high = self.device.utilisation_low, self.device.utilisation_high
        hours = Range(
            accounting.device_hours(flops, self.device.peak_flops, high),
            accounting.device_hours(flops, self.device.peak_flops, low),
        )
        return Cost(
            flops=flops, device_hours=hours, wall_hours=hours.times(1 / self.n_devices),
            money=hours.times(self.device.price_per_hour),
        )  # fmt: skip
