"""The formulas as one would first write them: dense, by autograd, at every position.

What `model` does faster is raced against these and, in the tests, must equal them.

Shape suffixes used in this file:
    B batch   T position   N row   Q query width   K concept   k concept kept   D width   C chunk
    M place for a concept   V vocabulary
"""

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from model.forcing import Forcing, Parts, pooled_labels, recompose, supervised
from model.language_model import LanguageModel
from model.losses import contribution, dependence, reconstruction
from model.objective import Example
from model.terms import Term
from model.tiles import SMALLEST, Votes, log1mexp
from model.topk import TopConcepts, activations
from model.train_config import ObjectiveConfig

BLOCK = 4_096
"""Concepts of a block in the streaming merge, as the released package takes them."""


def merged_top(query_NQ: Tensor, predictor_KQ: Tensor, k: int) -> TopConcepts:
    """The k strongest by a running list: every block's own top-k, joined with it and cut again.

    As the released package does it: the predictor is transposed and copied first, and the kept
    logits are made in the end from gathered rows of it, which autograd keeps.
    """
    values_Nk = query_NQ.new_full((len(query_NQ), 0), 0.0)
    ids_Nk = torch.zeros(len(query_NQ), 0, dtype=torch.int64)
    with torch.no_grad():
        predictor_QK = predictor_KQ.T.contiguous()
        for start in range(0, len(predictor_KQ), BLOCK):
            block_NK = activations(query_NQ @ predictor_QK[:, start : start + BLOCK])
            found = block_NK.topk(min(k, block_NK.shape[1]))
            values = torch.cat([values_Nk, found.values], dim=1)
            ids = torch.cat([ids_Nk, found.indices + start], dim=1)
            values_Nk, place_Nk = values.topk(min(k, values.shape[1]))
            ids_Nk = ids.gather(1, place_Nk)
    logits_Nk = torch.einsum("nq,nkq->nk", query_NQ, predictor_KQ[ids_Nk])
    return TopConcepts(ids_Nk, activations(logits_Nk))


def dense_top(query_NQ: Tensor, predictor_KQ: Tensor, k: int) -> TopConcepts:
    """The k strongest of all logits at once: the formula, as it is written."""
    found = activations(query_NQ @ predictor_KQ.T).topk(k)
    return TopConcepts(found.indices, found.values)


def gathered_sum(table_KQ: Tensor, top: TopConcepts) -> Tensor:
    """Σ activation · table[id] with the rows gathered."""
    return torch.einsum("nk,nkq->nq", top.activations, table_KQ[top.ids])


def dense_sum(
    query_NQ: Tensor, predictor_KQ: Tensor, bias_K: Tensor | None, embedding_KE: Tensor
) -> Tensor:
    """Σ σ(z) E over all concepts."""
    return activations(functional.linear(query_NQ, predictor_KQ, bias_K)) @ embedding_KE


def or_loss(logits_NK: Tensor, votes: Votes) -> Tensor:
    """The chunk-OR loss of rows that all vote."""
    n_chunks, n_concepts = len(votes.concepts_CM), logits_NK.shape[1]
    none_CK = logits_NK.new_zeros(n_chunks, n_concepts)
    absent_CK = none_CK.index_add(0, votes.chunk_N, functional.softplus(logits_NK))
    present_CK = -log1mexp(absent_CK.clamp(min=SMALLEST))
    place_CM = torch.where(votes.concepts_CM < 0, n_concepts, votes.concepts_CM)
    labelled = torch.zeros(n_chunks, n_concepts + 1, dtype=torch.bool).scatter_(
        1, place_CM, value=1
    )
    loss_C = torch.where(labelled[:, :n_concepts], present_CK, absent_CK).mean(dim=1)
    return loss_C[torch.bincount(votes.chunk_N, minlength=n_chunks) > 0].sum()


def sums(lm: LanguageModel, config: ObjectiveConfig, example: Example) -> dict[Term, Tensor]:
    """The trained terms of the objective, `token_mean`, with both heads dense at every position."""
    batch, asked = example.batch, example.asked
    masked_BT, heads = asked.masked_BT, lm.concepts
    hidden_BTD = lm.hidden(asked.noisy_BT)
    logits_BTK = heads.known.logits(hidden_BTD)
    known_BTD = _total(logits_BTK, heads.known.tables().embedding_KE, heads.known.top_k, example)
    logits_BTU = heads.unknown.logits(hidden_BTD.detach())
    unknown_BTE = _total(
        logits_BTU, heads.unknown.tables().embedding_KE, heads.unknown.top_k, example
    )
    truth_CD = functional.pad(
        pooled_labels(heads.known.embedding_KD, batch.concepts_CM), (0, 0, 0, 1)
    )
    teaching_C = functional.pad(supervised(batch), (0, 1))
    chunk_N = batch.chunk_BT[masked_BT]
    parts = Parts(
        hidden_ND=hidden_BTD[masked_BT],
        known_ND=known_BTD[masked_BT],
        unknown_ND=heads.unknown.widen(unknown_BTE)[masked_BT],
        truth_ND=truth_CD[chunk_N],
        supervised_N=teaching_C[chunk_N],
    )
    state_ND = recompose(parts, _drawn(lm, example), masked_BT)
    target_N = asked.target_BT[masked_BT]
    votes_BT = teaching_C[batch.chunk_BT] & (masked_BT | (config.or_tokens == "all"))
    votes = Votes(batch.chunk_BT[votes_BT], batch.concepts_CM)
    two_terms = config.independence == "two_term"
    bare = replace(parts, hidden_ND=parts.known_ND + parts.unknown_ND)
    seen = parts if heads.config.residual else bare
    return {
        Term.LANGUAGE: functional.cross_entropy(lm.unembed(state_ND), target_N, reduction="sum"),
        Term.CONCEPT: or_loss(logits_BTK[votes_BT], votes),
        Term.RECONSTRUCTION: reconstruction(parts),
        Term.INDEPENDENCE: dependence(parts, masked_BT, with_residual=two_terms),
        Term.CONTRIBUTION: contribution(seen, lm.head_VD[target_N]),
    }


def _total(logits_K: Tensor, embedding_KE: Tensor, k: int, example: Example) -> Tensor:
    active_K = activations(logits_K)
    if example.sparse:
        kept = logits_K.topk(k, dim=-1).indices
        active_K = active_K * torch.zeros_like(active_K).scatter_(-1, kept, value=1.0)
    return active_K @ embedding_KE


def _drawn(lm: LanguageModel, example: Example) -> Forcing:
    if lm.concepts.config.residual:
        return example.forcing
    everywhere_BT = torch.ones_like(example.forcing.residual_dropped_BT)
    return replace(example.forcing, residual_dropped_BT=everywhere_BT)
