"""The four interpretability metrics and the loss, on held-out answers (paper §7.1).

Half of each answer is hidden, and the network is asked for it from the prompt and the rest; a
causal network for each token from those before it. The same tokens before and after.

Shape suffixes used in this file:
    B batch   N row (a token that is asked for)   C chunk of the batch   K known concept
    A answer
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from components.alignment import Alignment
from components.scores import Scorer, Scores
from model.diffusion import Batch, fixed, question
from model.estimators import FIXED_RATE
from model.forcing import supervised
from model.language_model import LanguageModel
from model.likelihood import target_nats
from model.losses import voted
from model.metrics import add_absence, concept_nats, dependence, read_targets

Floats = NDArray[np.float64]


@dataclass
class Measured:
    """Sums by answer, and one number a labelled chunk."""

    tokens: list[float] = field(default_factory=list)
    nats: list[float] = field(default_factory=list)
    contribution: list[float] = field(default_factory=list)
    dependence: list[float] = field(default_factory=list)
    """Of answers with two asked tokens or more."""

    concept_nats: list[float] = field(default_factory=list)


@torch.no_grad()
def measure(lm: LanguageModel, held_out: Sequence[Batch], seed: int) -> Measured:
    """Ask for the held-out answers once."""
    found = Measured()
    for batch in held_out:
        asked = question(batch, fixed(FIXED_RATE), seed, 0, lm.config)
        answer_N, place_N = asked.masked_BT.nonzero(as_tuple=True)
        hidden_ND = lm.hidden(asked.noisy_BT)[answer_N, place_N]
        target_N = asked.target_BT[answer_N, place_N]
        found.tokens += _by_answer(torch.ones(len(target_N)), answer_N, len(batch))
        if lm.bottleneck is None:
            nats_N = target_nats(lm, hidden_ND, target_N)
            found.nats += _by_answer(nats_N, answer_N, len(batch))
            continue
        readout = read_targets(lm, hidden_ND, torch.zeros_like(hidden_ND), target_N)
        found.nats += _by_answer(readout.nll_N, answer_N, len(batch))
        share_N = readout.projections.contribution_N
        found.contribution += _by_answer(share_N, answer_N, len(batch))
        found.concept_nats += _concept_nats(lm, batch, hidden_ND, batch.chunk_BT[answer_N, place_N])
        parts = lm.concepts(hidden_ND)
        for answer in range(len(batch)):
            mine_N = answer_N == answer
            if int(mine_N.sum()) > 1:
                both = parts.known_BTD[mine_N], parts.unknown_BTD[mine_N]
                found.dependence.append(dependence(*both).paper)
    return found


def scores_of(found: Measured, when: str, scorer: Scorer) -> Scores:
    """Loss, contribution, independence and concept loss, under names that end in `when`."""
    tokens_A = np.array(found.tokens)
    scores = {
        f"answer_nll_nats_per_token_{when}": scorer.ratio(
            np.array(found.nats), tokens_A, "nats per token", "capability",
            "held-out answers, half hidden in the diffusion families", "answers",
        ),
    }  # fmt: skip
    if found.concept_nats:
        scores |= {
            f"concept_loss_nats_{when}": scorer.mean(
                np.array(found.concept_nats), "chunks", "nats per chunk and concept",
                "interpretation", "OR over a chunk's asked tokens, all concepts",
            ),
            f"independence_loss_{when}": scorer.mean(
                np.array(found.dependence), "answers", "squared state units", "interpretation",
                "form of the paper, eq. 13-14",
            ),
            f"concept_contribution_{when}": scorer.ratio(
                np.array(found.contribution), tokens_A, "share of the absolute logit", "coverage",
                "known and unknown, absolute", "answers",
            ),
        }  # fmt: skip
    return scores


def change_of(before: Measured, after: Measured, scorer: Scorer) -> Scores:
    """What fine-tuning did to the loss of the same tokens."""
    change_A = np.array(after.nats) - np.array(before.nats)
    return {
        "answer_nll_change_nats_per_token": scorer.ratio(
            change_A, np.array(before.tokens), "nats per token", "capability",
            "after less before, paired", "answers",
        )
    }  # fmt: skip


def scores_of_alignment(found: Alignment, judge: str, when: str, scorer: Scorer) -> Scores:
    """The offline judge: own cards against all others."""
    return {
        f"alignment_auroc_{when}": scorer.mean(
            found.auroc_K, "concepts", "area", "interpretation",
            f"offline judge: cosine of card and top tokens by {judge}; 0.5 is chance",
        )
    }  # fmt: skip


def _concept_nats(
    lm: LanguageModel, batch: Batch, hidden_ND: Tensor, chunk_N: Tensor
) -> list[float]:
    """One number for each chunk that is labelled and has an asked token."""
    concepts, n_chunks = lm.concepts, len(batch.labelled_C)
    pooled_N = chunk_N >= 0
    absence_CK = torch.zeros(n_chunks, concepts.config.n_known)
    add_absence(absence_CK, concepts.known.logits(hidden_ND[pooled_N]), chunk_N[pooled_N])
    place_CM = torch.where(batch.concepts_CM < 0, concepts.config.n_known, batch.concepts_CM)
    label_CK = torch.zeros(n_chunks, concepts.config.n_known + 1, dtype=torch.bool)
    label_CK = label_CK.scatter_(1, place_CM, value=1)[:, :-1]
    taught_C = supervised(batch) & voted(chunk_N, n_chunks)
    found: list[float] = concept_nats(absence_CK, label_CK)[taught_C].tolist()
    return found


def _by_answer(value_N: Tensor, answer_N: Tensor, n_answers: int) -> list[float]:
    sums: list[float] = torch.zeros(n_answers).index_add(0, answer_N, value_N.float()).tolist()
    return sums
