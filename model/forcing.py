"""Teacher forcing and the two dropouts: which parts a training state is made of (paper §5.4.2).

    h̄ = known used + unknown used + residual,   residual = h − known used − unknown used

The residual is taken from the parts actually used, so while it is kept h̄ *is* h, whatever is
forced, and no gradient of the language model reaches the known head. Where it is dropped, the
token must be predicted from the parts alone: only there do the concept embeddings learn.

Shape suffixes used in this file:
    B batch   T position   N row (a token that is asked for)   C chunk   M place   D width
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from model.diffusion import Batch
from model.draws import Purpose, uniforms


@dataclass(frozen=True)
class Forcing:
    """What is forced and dropped in one step. Forcing and known dropout are per sequence."""

    known_B: Tensor
    unknown_B: Tensor
    known_dropped_B: Tensor
    residual_dropped_BT: Tensor


@dataclass(frozen=True)
class Chances:
    """Probabilities of the four events."""

    known: float = 0.0
    unknown: float = 0.0
    known_dropped: float = 0.0
    residual_dropped: float = 0.0


def draw(batch: Batch, chances: Chances, *, seed: int, step: int) -> Forcing:
    """Decide for every sequence and token, by its name and never by its rank."""

    def happens(chance: float, n: int, purpose: Purpose) -> Tensor:
        if chance <= 0.0:
            return torch.zeros(len(batch), n, dtype=torch.bool)
        return uniforms(batch.sample_ids_B, n, seed=seed, step=step, purpose=purpose) < chance

    length = batch.ids_BT.shape[1]
    return Forcing(
        known_B=happens(chances.known, 1, Purpose.FORCE_KNOWN)[:, 0],
        unknown_B=happens(chances.unknown, 1, Purpose.FORCE_UNKNOWN)[:, 0],
        known_dropped_B=happens(chances.known_dropped, 1, Purpose.DROP_KNOWN)[:, 0],
        residual_dropped_BT=happens(chances.residual_dropped, length, Purpose.DROP_RESIDUAL),
    )


def supervised(batch: Batch) -> Tensor:
    """Chunks that teach concepts (C): labelled, with at least one concept."""
    return batch.labelled_C & (batch.concepts_CM >= 0).any(dim=1)


def pooled_labels(embedding_KD: Tensor, concepts_CM: Tensor) -> Tensor:
    """k̂ of the labels (C, D): the plain sum of the embeddings of a chunk's concepts."""
    present_CM = (concepts_CM >= 0).float()
    return F.embedding_bag(
        concepts_CM.clamp(min=0),
        embedding_KD.float(),
        per_sample_weights=present_CM,
        mode="sum",
    )


@dataclass(frozen=True)
class Parts:
    """The parts of each row's state: the network's own, and what the labels say."""

    hidden_ND: Tensor
    known_ND: Tensor
    unknown_ND: Tensor
    truth_ND: Tensor
    """k̂ of the labels; meaningless where not `supervised_N`."""

    supervised_N: Tensor


def recompose(parts: Parts, forcing: Forcing, masked_BT: Tensor) -> Tensor:
    """The state (N, D) the head reads, of the rows that are asked for.

    A token without labels keeps the network's own parts. The unknown part enters detached, forced
    or not: the language model must not train it.
    """
    sequence_N = masked_BT.nonzero()[:, 0]
    forced_N1 = (forcing.known_B[sequence_N] & parts.supervised_N).unsqueeze(-1)
    dropped_N1 = forcing.known_dropped_B[sequence_N].unsqueeze(-1)
    truth_ND = parts.truth_ND.masked_fill(dropped_N1, 0.0)
    known_ND = torch.where(forced_N1, truth_ND, parts.known_ND)

    forced_N1 = (forcing.unknown_B[sequence_N] & parts.supervised_N).unsqueeze(-1)
    rest_ND = parts.hidden_ND - parts.truth_ND
    unknown_ND = torch.where(forced_N1, rest_ND, parts.unknown_ND).detach()

    without_residual_ND = known_ND + unknown_ND
    lost_N1 = forcing.residual_dropped_BT[masked_BT].unsqueeze(-1)
    return torch.where(lost_N1, without_residual_ND, parts.hidden_ND)
