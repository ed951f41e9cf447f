"""Which tokens of a block are hidden, how often, and how much each time counts (method §7.3).

    left to right   one mask a token: it and all after it, of which it alone counts
    random          every mask of the block once, or a sample: mask counts k spread evenly over
                    1 … m, which tokens at random, each weighted by m / k

Shape suffixes used in this file:
    S mask of the block   M asked token of the block
"""

from dataclasses import dataclass
from math import comb

import torch
from torch import Tensor

from model.conditional_config import ConditionalConfig
from model.draws import Purpose, uniforms


@dataclass(frozen=True)
class Plan:
    """The masks of one block: which tokens are hidden, which of those count, and how much."""

    hidden_SM: Tensor
    counted_SM: Tensor
    weight_S: Tensor
    sampled: bool


def planned(n_asked: int, name: int, block_index: int, config: ConditionalConfig) -> Plan:
    """The masks of a block with `n_asked` tokens of the continuation that `name` names."""
    if config.order == "left_to_right":
        own_SM = torch.eye(n_asked, dtype=torch.bool)
        return Plan(own_SM.cumsum(dim=1) > 0, own_SM, torch.ones(n_asked), sampled=False)
    if 2**n_asked - 1 <= config.samples:
        bits_S1 = torch.arange(1, 2**n_asked)[:, None]
        every_SM = (bits_S1 >> torch.arange(n_asked)) & 1 == 1
        weight_S = torch.tensor([1 / (comb(n_asked, k) * k) for k in every_SM.sum(1).tolist()])
        return Plan(every_SM, every_SM, weight_S, sampled=False)

    def drawn(n: int, purpose: Purpose) -> Tensor:
        whose = torch.tensor([name])
        return uniforms(whose, n, seed=config.seed, step=block_index, purpose=purpose)[0]

    n = config.samples
    stratum_S = (torch.arange(n) + drawn(n, Purpose.RATE)) / n
    count_S = 1 + (n_asked * stratum_S).long().clamp(max=n_asked - 1)
    score_SM = drawn(n * n_asked, Purpose.MASK).reshape(n, n_asked)
    hidden_SM = score_SM.argsort(dim=1).argsort(dim=1) < count_S[:, None]
    return Plan(hidden_SM, hidden_SM, n_asked / (count_S * n), sampled=True)
