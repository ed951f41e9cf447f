"""Which rows the known head reads, and which of them with a gradient (method §3.6).

    h̄ = k̂ + û + ε,  ε = h − k̂ − û:  while ε is kept, k̂ cancels and L_LM sends it nothing
    L_rec, L_ind      take k̂ detached
    L_c               takes the logits, never the sum

So the sum over all known concepts needs a gradient only at rows whose residual was dropped and
whose known part is the head's own, its value at masked rows, and the loss only at tokens of chunks
that teach. What each costs is counted by `flops`.

Shape suffixes used in this file:
    B batch   T position   N row read   M masked row   C chunk
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from model.config import BottleneckConfig
from model.diffusion import Batch
from model.forcing import Forcing, supervised
from model.tiles import Votes


@dataclass(frozen=True)
class Rows:
    """The rows of one pass over the known concepts: masked ones first, voting ones last."""

    place_N: Tensor
    """int64: position in the flattened batch."""

    masked_M: Tensor
    """int64: which row each masked token is, in reading order."""

    votes: Votes

    @property
    def n_summed(self) -> int:
        return len(self.masked_M)


def rows(batch: Batch, masked_BT: Tensor, votes_BT: Tensor) -> Rows:
    """Order masked tokens and tokens that vote so that each kind is one run of rows."""
    teaching_C = F.pad(supervised(batch), (0, 1))
    chunk_T = batch.chunk_BT.flatten()
    masked_T = masked_BT.flatten()
    voting_T = votes_BT.flatten() & teaching_C[chunk_T]
    kinds = (masked_T & ~voting_T, masked_T & voting_T, voting_T & ~masked_T)
    place_N = torch.cat([kind.nonzero()[:, 0] for kind in kinds])
    masked_M = place_N[: int(masked_T.sum())].argsort()
    chunk_N = chunk_T[place_N[len(place_N) - int(voting_T.sum()) :]]
    return Rows(place_N, masked_M, Votes(chunk_N, batch.concepts_CM))


def reads_known(forcing: Forcing, supervised_M: Tensor, masked_BT: Tensor) -> Tensor:
    """Masked rows whose state is made of the head's own known part (M)."""
    forced_M = forcing.known_B[masked_BT.nonzero()[:, 0]] & supervised_M
    return forcing.residual_dropped_BT[masked_BT] & ~forced_M


@dataclass(frozen=True)
class Flops:
    """Matrix products of the two heads in one training step, forward and backward."""

    known: float
    unknown: float

    @property
    def total(self) -> float:
        return self.known + self.unknown


def flops(
    config: BottleneckConfig,
    width: int,
    *,
    n_rows: int,
    n_masked: int,
    n_voting: int,
    n_graded: int,
) -> Flops:
    """Of the dense phase: `n_rows` read at all, some masked, some voting, some with a gradient."""
    known = 2 * config.n_known * width
    rank = width if config.rank is None else config.rank
    unknown = 2 * config.n_unknown * rank
    # Thin products: query and sum forward; backward their two tables, and the sum's own input.
    thin = 0 if config.rank is None else 2 * width * rank
    return Flops(
        known=float(known * (n_rows + n_masked + 2 * n_voting + 5 * n_graded)),
        # Two forward; backward makes the logits again, then four. The state gets none of it.
        unknown=float(n_masked * (unknown * (7 if config.rank else 6) + 5 * thin)),
    )


def straightforward_flops(config: BottleneckConfig, width: int, n_tokens: int) -> Flops:
    """The same step with both heads dense at every token: twice forward, four times backward."""
    known = 2 * config.n_known * width
    rank = width if config.rank is None else config.rank
    thin = 0 if config.rank is None else 2 * width * rank
    unknown = 2 * config.n_unknown * rank
    return Flops(
        known=float(n_tokens * known * 6),
        unknown=float(n_tokens * (unknown * (6 if config.rank else 5) + 5 * thin)),
    )
