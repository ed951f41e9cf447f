"""How the unsteered network reads a text that was written: loss, concepts, repetition (paper §6.2).

Every token of the continuation is asked for once, with half of it masked, so that what was steered
into the states while the text was written is not read back as if it stood in the text.

Shape suffixes: N token of the continuation   B row (one)   T position   D width
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from components.explaining.accounts import Account
from components.explaining.opened import Opened
from components.explaining.schema import Kind, TextQuality
from components.explaining.writing import reading_order
from model.attribution import concept_attribution
from model.continuation import questions
from model.language_model import LanguageModel
from model.likelihood import target_nats
from model.metrics import presence
from model.trace import Trace

_RUN = 4


@dataclass(frozen=True)
class TextReading:
    """What was read off, a row a token."""

    lm: LanguageModel
    account: Account
    nats_N: Tensor
    state_ND: Tensor
    token_ids: tuple[int, ...]
    """In reading order, as nothing above is."""

    @torch.no_grad()
    def presence(self, kind: Kind, concept_id: int) -> float:
        """Probability that the text carries a concept: a noisy OR over its tokens."""
        heads = {"known": self.lm.concepts.known, "unknown": self.lm.concepts.unknown}
        logit_N = heads[kind].logits(self.state_ND)[:, concept_id]
        absence_11 = torch.nn.functional.softplus(logit_N.float()).sum()[None, None]
        return float(presence(absence_11))

    @property
    def quality(self) -> TextQuality:
        return TextQuality(
            loss_nats_per_token=float(self.nats_N.mean()),
            distinct_2_share=distinct_2(self.token_ids),
            repeated_share=repeated(self.token_ids),
            n_tokens=len(self.token_ids),
        )


@torch.no_grad()
def read(opened: Opened, trace: Trace, seed: int) -> TextReading:
    """Read a generated text behind its prompt."""
    lm = opened.lm
    ids_1T = trace.ids_T[None, : trace.end]
    commits_N = reading_order(trace)
    continued_1T = torch.zeros_like(ids_1T, dtype=torch.bool)
    continued_1T[:, trace.position_N[commits_N]] = True
    states, tokens = [], []
    for noisy_1T, asked_1T, readout_1T in questions(lm, ids_1T, continued_1T, seed):
        states.append(lm.hidden(noisy_1T)[readout_1T])
        tokens.append(ids_1T[asked_1T])
    state_ND, token_N = torch.cat(states), torch.cat(tokens)
    logit_N = (lm.composed(state_ND) * lm.head_VD[token_N]).sum(-1)
    account = Account(concept_attribution(lm, state_ND, token_N, logit_N), opened.vocabulary)
    nats_N = target_nats(lm, state_ND, token_N).float()
    return TextReading(lm, account, nats_N, state_ND, tuple(trace.token_N[commits_N].tolist()))


def distinct_2(token_ids: Sequence[int]) -> float:
    """Share of neighbouring pairs that occur for the first time; 1 where there is no pair."""
    pairs = list(pairwise(token_ids))
    return len(set(pairs)) / len(pairs) if pairs else 1.0


def repeated(token_ids: Sequence[int]) -> float:
    """Share of tokens that end a run of four which the text had before."""
    runs = [tuple(token_ids[at - _RUN : at]) for at in range(_RUN, len(token_ids) + 1)]
    return (len(runs) - len(set(runs))) / max(1, len(token_ids))
