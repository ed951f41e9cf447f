"""Uniform numbers addressed by (seed, step, sample, purpose), the same on any rank of any world.

Noise, forcing and dropout draw from here, so that splitting a batch over more ranks, or over more
micro-batches, changes nothing. Philox is counter-based: an address needs no earlier draw.
"""

from enum import IntEnum

import numpy as np
import torch
from torch import Tensor


class Purpose(IntEnum):
    """What a draw decides. Two purposes never share numbers."""

    RATE = 0
    MASK = 1
    PREFIX = 2
    FORCE_KNOWN = 3
    FORCE_UNKNOWN = 4
    DROP_KNOWN = 5
    DROP_RESIDUAL = 6
    TOKEN = 7
    STEER = 8


def uniforms(sample_ids_B: Tensor, n: int, *, seed: int, step: int, purpose: Purpose) -> Tensor:
    """Uniform numbers in [0, 1), `n` for each sample. Returns float32 of shape (B, n)."""
    rows = [
        np.random.Generator(
            np.random.Philox(
                key=np.array([seed, step], np.uint64), counter=[0, 0, sample, int(purpose)]
            )
        ).random(n, dtype=np.float32)
        for sample in sample_ids_B.tolist()
    ]
    return torch.from_numpy(np.stack(rows)) if rows else torch.empty(0, n)
