"""The terms of the training objective (paper §5.4.1, eq. 2 and 9-15).

    L  =  L_LM  +  λ_c · L_c  +  λ_rec · L_rec  +  λ_ind · L_ind

L_LM    nats per masked token, unweighted, from the recomposed state       eq. 2
L_c     noisy-OR over a chunk's tokens, cross-entropy with its labels      eq. 9-10
L_rec   what the unknown head misses of the state less its labels          eq. 12
L_ind   linear dependence between the known and the unknown part           eq. 13-14

Each term is a sum here or, where it is made together with what it is made from, in
`model.vocabulary` (L_LM) and `model.tiles` (L_c); `model.objective` knows the denominators and
joins them.

Shape suffixes used in this file:
    B batch   T position   N row (a token that is asked for)   C chunk   D width
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from model.forcing import Parts
from model.language_model import LanguageModel


def cross_entropy(lm: LanguageModel, state_ND: Tensor, target_N: Tensor) -> Tensor:
    """Nats of each row's target (N)."""
    return F.cross_entropy(lm.unembed(state_ND).float(), target_N, reduction="none")


def reconstruction(parts: Parts) -> Tensor:
    """Σ over rows of ‖û − (h − k̂ of the labels)‖² / D. Trains the unknown head alone."""
    known_ND = torch.where(parts.supervised_N.unsqueeze(-1), parts.truth_ND, parts.known_ND)
    wanted_ND = (parts.hidden_ND - known_ND).detach()
    return (parts.unknown_ND - wanted_ND).square().mean(dim=1).sum()


def dependence(parts: Parts, masked_BT: Tensor, *, with_residual: bool) -> Tensor:
    """Σ over sequences of ‖Ψᵀ Φ‖² / (D² (rows − 1)), Φ and Ψ the centred known and unknown parts.

    Trains the unknown head alone. `with_residual` adds the same between the known part and the
    residual: the second term of mid-training's penalty, whose form the paper leaves open.
    """
    known_ND = parts.known_ND.detach()
    total = _dependence(known_ND, parts.unknown_ND, masked_BT)
    if with_residual:
        residual_ND = (parts.hidden_ND - parts.known_ND).detach() - parts.unknown_ND
        total = total + _dependence(known_ND, residual_ND, masked_BT)
    return total


def _dependence(first_ND: Tensor, second_ND: Tensor, masked_BT: Tensor) -> Tensor:
    n_rows_B = masked_BT.sum(dim=1)
    first_BTD, second_BTD = _centred(first_ND, masked_BT), _centred(second_ND, masked_BT)
    length, width = first_BTD.shape[1:]
    if length < width / 2:
        # ‖Ψᵀ Φ‖² = Σ (Ψ Ψᵀ) ∘ (Φ Φᵀ): two kernels of the rows are then the smaller matrices.
        square_BTT = (first_BTD @ first_BTD.mT) * (second_BTD @ second_BTD.mT)
        square_B = square_BTT.sum(dim=(1, 2))
    else:
        square_B = (second_BTD.mT @ first_BTD).square().sum(dim=(1, 2))
    of_sequence_B = square_B / (width**2 * (n_rows_B - 1).clamp(min=1))
    return of_sequence_B[n_rows_B >= 2].sum()


def _centred(rows_ND: Tensor, masked_BT: Tensor) -> Tensor:
    """Rows back at their places, less the mean of their sequence; zero elsewhere."""
    placed_BTD = rows_ND.new_zeros(*masked_BT.shape, rows_ND.shape[1])
    placed_BTD = placed_BTD.index_put((masked_BT,), rows_ND)
    n_rows_B11 = masked_BT.sum(dim=1).clamp(min=1)[:, None, None]
    mean_B1D = placed_BTD.sum(dim=1, keepdim=True) / n_rows_B11
    return (placed_BTD - mean_B1D) * masked_BT.unsqueeze(-1)


@torch.no_grad()
def contribution(parts: Parts, target_row_ND: Tensor) -> Tensor:
    """Σ over rows of the named parts' share of the target's logit, in absolute value (eq. 22)."""
    row_ND = target_row_ND.float()
    residual_ND = parts.hidden_ND - parts.known_ND - parts.unknown_ND
    known_N, unknown_N, residual_N = (
        (part_ND * row_ND).sum(dim=1).abs()
        for part_ND in (parts.known_ND, parts.unknown_ND, residual_ND)
    )
    named_N = known_N + unknown_N
    return (named_N / (named_N + residual_N).clamp(min=1e-12)).sum()


def voted(chunk_N: Tensor, n_chunks: int) -> Tensor:
    """Chunks with at least one vote (C)."""
    return torch.bincount(chunk_N[chunk_N >= 0], minlength=n_chunks) > 0
