"""How a network reads a text that was generated: its loss, and a concept's presence (paper §6.2).

Steering is judged by the unsteered network. Every token of the continuation is asked for once, with
half of the continuation masked: one random half, then the other. AR families read left to right.

Shape suffixes used in this file:
    B row   T position   D width   V vocabulary   N token that is asked for
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from model.draws import Purpose, uniforms
from model.language_model import LanguageModel
from model.likelihood import target_nats
from model.metrics import presence


@dataclass(frozen=True)
class Reading:
    """One number a row."""

    nats_B: Tensor
    """Mean cross-entropy of the continuation's tokens, rate 0.5 (AR: of the next token)."""

    presence_B: Tensor
    """Noisy OR over those tokens of the asked concept's activation."""


@torch.no_grad()
def read(
    lm: LanguageModel, ids_BT: Tensor, continued_BT: Tensor, concept_B: Tensor, seed: int,
    sample_ids: Sequence[int] | None = None,
) -> Reading:  # fmt: skip
    """Read continuations (`continued`, at least one token a row); all else stays visible.

    What is masked of a row depends on its name (0, 1, 2 … unless given), not on the others.
    """
    n_rows, n_B = len(ids_BT), continued_BT.sum(1)
    nats_B, absence_B1 = torch.zeros(n_rows), torch.zeros(n_rows, 1)
    for noisy_BT, asked_BT, readout_BT in questions(lm, ids_BT, continued_BT, seed, sample_ids):
        row_N = asked_BT.nonzero()[:, 0]
        state_ND = lm.hidden(noisy_BT)[readout_BT]
        nats_B.index_add_(0, row_N, target_nats(lm, state_ND, ids_BT[asked_BT]).float())
        logit_N = _concept_logits(lm, state_ND, concept_B[row_N])
        absence_B1.index_add_(0, row_N, functional.softplus(logit_N)[:, None])
    return Reading(nats_B / n_B, presence(absence_B1)[:, 0])


def _concept_logits(lm: LanguageModel, state_ND: Tensor, concept_N: Tensor) -> Tensor:
    logit_NK: Tensor = lm.concepts.known.logits(state_ND)
    return logit_NK.gather(1, concept_N[:, None])[:, 0].float()


def questions(
    lm: LanguageModel, ids_BT: Tensor, continued_BT: Tensor, seed: int,
    sample_ids: Sequence[int] | None = None,
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:  # fmt: skip
    """What the network sees, which tokens it is asked for, and where their states are.

    Each continued token is asked for once, whatever the number of passes.
    """
    if lm.config.backbone.attention == "causal":
        yield ids_BT, continued_BT, continued_BT.roll(-1, dims=1)
        return
    names_B = torch.tensor(range(len(ids_BT)) if sample_ids is None else sample_ids)
    score_BT = uniforms(names_B, ids_BT.shape[1], seed=seed, step=0, purpose=Purpose.MASK)
    for half_BT in (score_BT < 0.5, score_BT >= 0.5):
        asked_BT = continued_BT & half_BT
        yield ids_BT.masked_fill(asked_BT, lm.config.mask_id), asked_BT, asked_BT
