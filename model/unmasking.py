"""Which masked positions are committed, and which token each gets (paper §5).

Which position is next depends on the network's certainty, not on the token drawn: positions chosen
by the probability of their own draw would favour likely tokens and skew the text.

Shape suffixes used in this file:
    A row   T position   N masked position of any row, row by row   R commit   V vocabulary
"""

import torch
from torch import Tensor

from model.sampling_config import EntropyConfig, SamplingConfig


def certainty(logits_NV: Tensor) -> Tensor:
    """The largest probability of each position."""
    return (logits_NV.max(-1).values - logits_NV.logsumexp(-1)).exp()


def chosen(certainty_N: Tensor, open_AT: Tensor, threshold: float | None) -> Tensor:
    """Which of the open positions are committed now (N): the surest of each row, or all that are
    sure enough. Of equals the first."""
    certainty_AT = torch.full(open_AT.shape, -1.0, device=certainty_N.device)
    certainty_AT[open_AT] = certainty_N
    now_AT = torch.zeros_like(open_AT)
    now_AT.scatter_(1, certainty_AT.argmax(1, keepdim=True), value=True)
    if threshold is not None:
        now_AT |= certainty_AT >= threshold
    return now_AT[open_AT]


def draw(logits_RV: Tensor, config: SamplingConfig, uniform_R: Tensor) -> Tensor:
    """One token each: the likeliest at temperature 0, else from the nucleus, by the uniform."""
    if config.temperature == 0.0:
        return logits_RV.argmax(-1)
    wide_RV = logits_RV.double()
    warmth_R1 = torch.full_like(wide_RV[:, :1], config.temperature)
    if config.entropy is not None:
        warmth_R1 = warmth_R1 * _undecided(wide_RV, config.top_p, config.entropy)
    ranked = (wide_RV / warmth_R1).softmax(-1).sort(-1, descending=True)
    before_RV = ranked.values.cumsum(-1) - ranked.values
    mass_RV = ranked.values.where(before_RV < config.top_p, 0.0).cumsum(-1)
    rank_R1 = (mass_RV <= uniform_R[:, None] * mass_RV[:, -1:]).sum(-1, keepdim=True)
    return ranked.indices.gather(-1, rank_R1).squeeze(-1)


def penalised(logits_RV: Tensor, used_RT: Tensor, spared: Tensor, penalty: float) -> Tensor:
    """Logits with those of used tokens lowered, but for the ids that are spared."""
    if penalty == 1.0:
        return logits_RV
    used_RV = torch.zeros_like(logits_RV, dtype=torch.bool).scatter_(1, used_RT, value=True)
    used_RV.index_fill_(1, spared, value=False)
    lowered_RV = torch.where(logits_RV > 0, logits_RV / penalty, logits_RV * penalty)
    return torch.where(used_RV, lowered_RV, logits_RV)


def _undecided(logits_RV: Tensor, top_p: float, config: EntropyConfig) -> Tensor:
    probability_RV = logits_RV.softmax(-1)
    entropy_R1 = torch.special.entr(probability_RV).sum(-1, keepdim=True)
    mass_RV = probability_RV.sort(-1, descending=True).values.cumsum(-1)
    held_R1 = (1 + (mass_RV <= top_p).sum(-1, keepdim=True)).clamp_min(2)
    share_R1 = (entropy_R1 / held_R1.log()).clamp_max(1.0)
    return config.low + (config.high - config.low) * share_R1
