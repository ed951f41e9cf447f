"""Steering inside training: it makes states that the network has seen by then (paper §10.2.4).

In a steering step each labelled chunk draws one of its concepts, rarer ones more often. At masked
tokens that the chunk hides of that concept's own words, the concept's direction is injected as it
will be in use; the network must notice it and say it.

    respond   −log σ(z_c)                      the known head reads the concept          eq. 31
    express   −log Σ p(v), v a word of c       the head writes one of its words          eq. 32
    step      L_LM + respond + express                                                   eq. 33

Directions are detached: a concept is not moved so that its own injection may be read.

Shape suffixes used in this file:
    B batch   T position   N token aimed at   C chunk   M place for a concept   W place for a word
    K known concept   D width   V vocabulary
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from model.diffusion import Batch, Corrupted
from model.draws import Purpose, uniforms
from model.language_model import LanguageModel
from model.train_config import InterleavingConfig
from model.transformer import Injection

ROWS_AT_ONCE = 256
"""Tokens whose logits over the vocabulary are held at once."""


@dataclass(frozen=True)
class Lifted:
    """What steering steps know of the concepts."""

    words_KW: Tensor
    """int64: token ids of each concept's lifted words, −1 in unused places."""

    odds_K: Tensor
    """float32: odds of a concept among those of its chunk; 1 / √prevalence, 0 for one that has no
    word."""


@dataclass(frozen=True)
class Aim:
    """Where one steering step injects, and which concept."""

    aimed_BT: Tensor
    """bool: masked tokens of a chunk that are words of the concept it drew."""

    concept_N: Tensor
    """int64, in reading order of `aimed_BT`."""

    words_NW: Tensor
    gain: float
    first_layer: int

    def __len__(self) -> int:
        return len(self.concept_N)


def aim(
    batch: Batch, asked: Corrupted, lifted: Lifted, config: InterleavingConfig,
    *, n_layers: int, seed: int, step: int,
) -> Aim:  # fmt: skip
    """Draw a concept for every labelled chunk and find its words among the masked tokens."""
    concept_C = _drawn(batch, lifted, seed=seed, step=step)
    concept_BT = F.pad(concept_C, (0, 1), value=-1)[batch.chunk_BT]  # the last: tokens of no chunk
    possible_BT = asked.masked_BT & (concept_BT >= 0)
    words_NW = lifted.words_KW[concept_BT[possible_BT]]
    is_word_N = (words_NW == asked.target_BT[possible_BT][:, None]).any(dim=1)
    aimed_BT = possible_BT.clone()
    aimed_BT[possible_BT] = is_word_N
    return Aim(
        aimed_BT=aimed_BT,
        concept_N=concept_BT[aimed_BT],
        words_NW=words_NW[is_word_N],
        gain=config.gain,
        first_layer=int(config.first_layer * n_layers),
    )


def injection(lm: LanguageModel, aim: Aim) -> Injection:
    """γ · e_c at the tokens aimed at, nothing elsewhere (eq. 18)."""
    rows_ND = F.embedding(aim.concept_N, lm.concepts.known.embedding_KD.detach().float())
    direction_ND = aim.gain * F.normalize(rows_ND, dim=1)
    addition_BTD = direction_ND.new_zeros(*aim.aimed_BT.shape, rows_ND.shape[1])
    addition_BTD = addition_BTD.index_put((aim.aimed_BT,), direction_ND)
    return Injection.from_layer(aim.first_layer, lm.config.backbone.n_layers, addition_BTD)


def respond(lm: LanguageModel, hidden_ND: Tensor, aim: Aim) -> Tensor:
    """Σ −log σ(z_c) over the tokens aimed at (eq. 31)."""
    known = lm.concepts.known
    row_ND = F.embedding(aim.concept_N, known.predictor_KD.float())
    logit_N = (hidden_ND.float() * row_ND).sum(dim=1)
    if known.bias_K is not None:
        logit_N = logit_N + known.bias_K.float()[aim.concept_N]
    return F.softplus(-logit_N).sum()


def express(lm: LanguageModel, state_ND: Tensor, aim: Aim) -> Tensor:
    """Σ −log of the probability of the concept's words over the tokens aimed at (eq. 32)."""
    total = state_ND.new_zeros(())
    for start in range(0, len(aim), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        words_NW = aim.words_NW[some]
        logp_NV = lm.unembed(state_ND[some]).float().log_softmax(dim=1)
        logp_NW = logp_NV.gather(1, words_NW.clamp(min=0)).masked_fill(words_NW < 0, -torch.inf)
        total = total - logp_NW.logsumexp(dim=1).sum()
    return total


def _drawn(batch: Batch, lifted: Lifted, *, seed: int, step: int) -> Tensor:
    """One concept of each labelled chunk (C), −1 where none has a word.

    The draw is addressed by the sequence and the chunk's place in it, never by the batch.
    """
    uniform_C = _by_chunk(batch, seed=seed, step=step)
    present_CM = (batch.concepts_CM >= 0) & batch.labelled_C[:, None]
    odds_CM = lifted.odds_K[batch.concepts_CM.clamp(min=0)] * present_CM
    total_C = odds_CM.sum(dim=1)
    below_CM = odds_CM.cumsum(dim=1) <= (uniform_C * total_C)[:, None]
    place_C1 = below_CM.sum(dim=1, keepdim=True).clamp(max=odds_CM.shape[1] - 1)
    chosen_C = batch.concepts_CM.gather(1, place_C1)[:, 0]
    reachable_C = (total_C > 0) & (odds_CM.gather(1, place_C1)[:, 0] > 0)
    return torch.where(reachable_C, chosen_C, -1)


def _by_chunk(batch: Batch, *, seed: int, step: int) -> Tensor:
    """A uniform number for each chunk (C)."""
    n_chunks, length = len(batch.labelled_C), batch.ids_BT.shape[1]
    uniform_BT = uniforms(batch.sample_ids_B, length, seed=seed, step=step, purpose=Purpose.STEER)
    pooled_BT = batch.chunk_BT >= 0
    first_C = torch.full((n_chunks,), batch.ids_BT.numel())
    place_BT = torch.arange(batch.ids_BT.numel()).view_as(batch.ids_BT)
    first_C = first_C.scatter_reduce(0, batch.chunk_BT[pooled_BT], place_BT[pooled_BT], "amin")
    return F.pad(uniform_BT.flatten(), (0, 1))[first_C]
