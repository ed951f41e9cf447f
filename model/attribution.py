"""Why a token, by its concepts: the parts of its state, exactly (paper §6.1.2).

    ℓ_y = Σ_c k_c (K_c·W_y) + û·W_y + ε·W_y                            eq. 22

What is explained is the forward pass that chose the token, by the state it recorded. The residual
is ε·W_y of the bottleneck's own residual, not what the others leave, so that the sum is a check
that can fail. What a token owes to its inputs is in `input_attribution`.

Shape suffixes used in this file:
    N committed token   k concept kept   D width
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from model.bottleneck import Decomposition
from model.language_model import LanguageModel


@dataclass(frozen=True)
class ConceptAttribution:
    """Signed contributions of the parts of a state to the logit of its token."""

    known_ids_Nk: Tensor
    known_Nk: Tensor
    unknown_ids_Nk: Tensor
    unknown_Nk: Tensor
    unknown_N: Tensor
    """Of û as a whole, not the sum of its concepts: the two must agree."""

    residual_N: Tensor
    logit_N: Tensor
    """The network's own logit, which the parts must add up to."""

    @property
    def known_N(self) -> Tensor:
        return self.known_Nk.sum(-1)

    @property
    def error_N(self) -> Tensor:
        """How far the parts are from the logit."""
        return (self.known_N + self.unknown_N + self.residual_N - self.logit_N).abs()

    @property
    def shares(self) -> "Shares":
        return shares(self.known_N, self.unknown_N, self.residual_N)


@dataclass(frozen=True)
class Shares:
    """Parts of the logits of some tokens. Absolute shares add up to one, signed ones as well."""

    known: float
    unknown: float
    residual: float
    known_signed: float
    unknown_signed: float
    residual_signed: float


@torch.no_grad()
def concept_attribution(
    lm: LanguageModel, state_ND: Tensor, token_N: Tensor, logit_N: Tensor
) -> ConceptAttribution:
    """Contributions to `logit_N`, the logits of `token_N`, of the parts of the states."""
    parts: Decomposition = lm.concepts(state_ND)
    row_ND = lm.head_VD[token_N].float()
    return ConceptAttribution(
        parts.top.ids,
        lm.concepts.known.contributions(parts.top, row_ND),
        parts.top_unknown.ids,
        lm.concepts.unknown.contributions(parts.top_unknown, row_ND),
        (parts.unknown_BTD * row_ND).sum(-1),
        (parts.residual_BTD * row_ND).sum(-1),
        logit_N,
    )


def shares(known_N: Tensor, unknown_N: Tensor, residual_N: Tensor) -> Shares:
    """Shares over all tokens: sums of magnitudes, which cannot cancel, and sums with sign."""
    parts_3N = torch.stack([known_N, unknown_N, residual_N]).double()
    absolute_3 = parts_3N.abs().sum(1) / parts_3N.abs().sum().clamp_min(1e-8)
    total = parts_3N.sum()
    signed_3 = parts_3N.sum(1) / torch.where(total.abs() < 1e-8, 1e-8, total)
    return Shares(*absolute_3.tolist(), *signed_3.tolist())
