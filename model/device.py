"""Where a process computes: the GPU it was given, or this processor. Decided here alone.

What is drawn, counted and reported stays on the processor; engines move what the network needs.
"""

import os
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")


@cache
def here() -> torch.device:
    """This process's device. Under torchrun each rank of a machine has its own GPU."""
    if torch.cuda.is_available():
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return torch.device("cpu")


def backend(device: torch.device) -> Literal["nccl", "gloo"]:
    """What ranks on such devices talk through."""
    return "nccl" if device.type == "cuda" else "gloo"


def multiplies_bfloat16(device: torch.device) -> bool:
    """Whether bfloat16 products are the fast ones there."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return bool(torch.cpu.get_capabilities().get("avx512_bf16", False))


def moved(value: T, device: torch.device) -> T:
    """A dataclass of tensors, and of such dataclasses, with every tensor on `device`."""
    assert is_dataclass(value)
    assert not isinstance(value, type)
    changes: dict[str, Any] = {}
    for field in fields(value):
        part = getattr(value, field.name)
        if isinstance(part, Tensor):
            changes[field.name] = part.to(device, non_blocking=True)
        elif is_dataclass(part):
            changes[field.name] = moved(part, device)
    return replace(value, **changes)


_PEAK_FLOPS = {
    "NVIDIA A100-SXM4-40GB": 312e12,
    "NVIDIA A100-SXM4-80GB": 312e12,
    "NVIDIA H100 PCIe": 756e12,
    "NVIDIA H100 80GB HBM3": 989e12,
    "NVIDIA H200": 989e12,
}
"""Dense bfloat16, from NVIDIA's data sheets, by the name the driver gives (half of "sparse")."""


def peak_flops(device: torch.device) -> float | None:
    """FLOP/s that the device's maker promises in bfloat16; None where that is not known."""
    if device.type != "cuda":
        return None
    return _PEAK_FLOPS.get(torch.cuda.get_device_name(device))
