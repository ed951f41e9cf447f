"""Network and loss as one module, and the denominators that make its sums means (paper §5.4.1).

`counts` knows every denominator from the question alone, so sums and counts can be added over
micro-batches and ranks before one is divided by the other: how a batch is split changes nothing.

Shape suffixes used in this file:
    B batch   T position   N row (a token that is asked for)   C chunk   K known concept
    U unknown concept   D width   S term of the objective
"""

from dataclasses import dataclass, replace
from enum import IntEnum

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.diffusion import Batch, Corrupted
from model.forcing import Forcing, Parts, pooled_labels, recompose, supervised
from model.language_model import LanguageModel
from model.losses import (
    concept_loss,
    contribution,
    cross_entropy,
    dependence,
    reconstruction,
    voted,
)
from model.positions import documents
from model.train_config import ObjectiveConfig


class Term(IntEnum):
    """Places in the vectors of sums and counts. The first four are trained, the rest reported."""

    LANGUAGE = 0
    CONCEPT = 1
    RECONSTRUCTION = 2
    INDEPENDENCE = 3
    NLL = 4
    CONTRIBUTION = 5


@dataclass(frozen=True)
class Example:
    """One micro-batch as the network meets it."""

    batch: Batch
    asked: Corrupted
    forcing: Forcing
    sparse: bool
    """Whether the heads keep their top-k alone."""


class Objective(nn.Module):
    """Network and loss in one module: an example in, one sum per term out (S)."""

    def __init__(self, lm: LanguageModel, config: ObjectiveConfig) -> None:
        super().__init__()
        self.lm = lm
        self.config = config

    def forward(self, example: Example) -> Tensor:
        asked = example.asked
        hidden_BTD = self._hidden(asked.noisy_BT)
        target_N = asked.target_BT[asked.masked_BT]
        if self.lm.bottleneck is None:
            nll_N = cross_entropy(self.lm, hidden_BTD[asked.masked_BT], target_N)
            zero = nll_N.new_zeros(())
            return torch.stack([self._language(nll_N, asked), zero, zero, zero, nll_N.sum(), zero])

        with _float32(hidden_BTD):
            parts, logits_NK = self._parts(example, hidden_BTD[asked.masked_BT])
            state_ND = recompose(parts, self._forcing(example), asked.masked_BT)
        nll_N = cross_entropy(self.lm, state_ND, target_N)
        two_terms = self.config.independence == "two_term"
        with _float32(hidden_BTD):
            return torch.stack(
                [
                    self._language(nll_N, asked),
                    self._concepts(example, hidden_BTD, logits_NK),
                    reconstruction(parts),
                    dependence(parts, asked.masked_BT, with_residual=two_terms),
                    nll_N.sum(),
                    contribution(parts, F.embedding(target_N, self.lm.head_VD)),
                ]
            )

    def _hidden(self, noisy_BT: Tensor) -> Tensor:
        if not self.config.document_mask:
            return self.lm.hidden(noisy_BT)
        return self.lm.hidden(noisy_BT, documents_BP=documents(noisy_BT, self.lm.config.bos_id))

    def _forcing(self, example: Example) -> Forcing:
        """What was drawn; a network without a residual has none to keep anywhere."""
        if self.lm.concepts.config.residual:
            return example.forcing
        everywhere_BT = torch.ones_like(example.asked.masked_BT)
        return replace(example.forcing, residual_dropped_BT=everywhere_BT)

    def _parts(self, example: Example, hidden_ND: Tensor) -> tuple[Parts, Tensor]:
        """The parts of the rows, and the known logits they came from."""
        bottleneck, batch = self.lm.concepts, example.batch
        wide_ND = hidden_ND.float()
        logits_NK = bottleneck.known.logits(wide_ND)
        # The unknown head learns from its own losses alone, and they stop at its input.
        logits_NU = bottleneck.unknown.logits(wide_ND.detach())
        truth_CD = pooled_labels(bottleneck.known.embedding_KD, batch.concepts_CM)
        # One more chunk, without labels, for the rows that belong to none (−1).
        truth_CD, teaching_C = F.pad(truth_CD, (0, 0, 0, 1)), F.pad(supervised(batch), (0, 1))
        chunk_N = batch.chunk_BT[example.asked.masked_BT]
        parts = Parts(
            hidden_ND=wide_ND,
            known_ND=bottleneck.known.total(logits_NK, sparse=example.sparse),
            unknown_ND=bottleneck.unknown.total(logits_NU, sparse=example.sparse),
            truth_ND=truth_CD[chunk_N],
            supervised_N=teaching_C[chunk_N],
        )
        return parts, logits_NK

    def _concepts(self, example: Example, hidden_BTD: Tensor, logits_NK: Tensor) -> Tensor:
        """L_c over the tokens that vote, whose logits may be at hand already."""
        batch, asked = example.batch, example.asked
        if self.config.or_tokens == "masked":
            return concept_loss(logits_NK, batch.chunk_BT[asked.masked_BT], batch)
        votes_BT = _votes(batch, asked, self.config)
        logits_NK = self.lm.concepts.known.logits(hidden_BTD[votes_BT])
        return concept_loss(logits_NK, batch.chunk_BT[votes_BT], batch)

    def _language(self, nll_N: Tensor, asked: Corrupted) -> Tensor:
        return (nll_N * self._weights(asked)).sum()

    def _weights(self, asked: Corrupted) -> Tensor:
        """How much each row counts in L_LM, so that the sum over `counts` is the mean wanted."""
        masked_BT = asked.masked_BT
        block = self.lm.config.backbone.block
        match self.config.reduction:
            case "token_mean":
                return torch.ones_like(asked.rate_BT)[masked_BT]
            case "block_mean":
                in_block_BN = _per_block(masked_BT, block)
                share_BN = 1.0 / in_block_BN.clamp(min=1.0)
                share_BT = share_BN.repeat_interleave(block, dim=1)[:, : masked_BT.shape[1]]
                return share_BT[masked_BT]
            case "elbo":
                return 1.0 / asked.rate_BT[masked_BT].clamp(min=1e-3)


def _float32(like: Tensor) -> torch.autocast:
    """Heads and their losses compute in float32 also where matrix products elsewhere do not."""
    return torch.autocast(like.device.type, enabled=False)


def counts(example: Example, lm: LanguageModel, config: ObjectiveConfig) -> Tensor:
    """Denominators of the terms (S), from the question alone."""
    batch, masked_BT = example.batch, example.asked.masked_BT
    n_rows = float(masked_BT.sum())
    match config.reduction:
        case "token_mean":
            n_language = n_rows
        case "block_mean":
            n_language = float((_per_block(masked_BT, lm.config.backbone.block) > 0).sum())
        case "elbo":
            specials = (batch.ids_BT == lm.config.pad_id) | (batch.ids_BT == lm.config.bos_id)
            n_language = float((~specials).sum())
    if lm.bottleneck is None:
        return torch.tensor([n_language, 0.0, 0.0, 0.0, n_rows, 0.0])
    voting_C = voted(batch.chunk_BT[_votes(batch, example.asked, config)], len(batch.labelled_C))
    n_chunks = float((voting_C & supervised(batch)).sum())
    n_sequences = float((masked_BT.sum(dim=1) >= 2).sum())
    return torch.tensor([n_language, n_chunks, n_rows, n_sequences, n_rows, n_rows])


def weights(config: ObjectiveConfig, counts_S: Tensor) -> Tensor:
    """What each sum is multiplied by in the loss (S): λ over the denominator, 0 for reports."""
    scale_S = torch.tensor(
        [
            1.0,
            config.concept_weight,
            config.reconstruction_weight,
            config.independence_weight,
            0.0,
            0.0,
        ]
    )
    return torch.where(counts_S > 0, scale_S / counts_S.clamp(min=1e-9), 0.0)


def _votes(batch: Batch, asked: Corrupted, config: ObjectiveConfig) -> Tensor:
    """Tokens that vote on their chunk's concepts (B, T)."""
    return (batch.chunk_BT >= 0) & (asked.masked_BT | (config.or_tokens == "all"))


def _per_block(masked_BT: Tensor, block: int) -> Tensor:
    """Masked tokens in each block of each sequence, (B, blocks)."""
    spare = -masked_BT.shape[1] % block
    return F.pad(masked_BT, (0, spare)).view(len(masked_BT), -1, block).sum(dim=2).float()
