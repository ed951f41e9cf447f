"""Network and loss as one module, and the denominators that make its sums means (paper §5.4.1).

`counts` knows every denominator from the question alone, so sums and counts can be added over
micro-batches and ranks before one is divided by the other: how a batch is split changes nothing.

Shape suffixes used in this file:
    B batch   T position   N row (a token that is asked for)   C chunk   K known concept
    U unknown concept   D width   S term of the objective
"""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.diffusion import Batch, Corrupted
from model.forcing import Forcing, Parts, pooled_labels, recompose, supervised
from model.interleaving import Aim, express, injection, respond
from model.language_model import LanguageModel
from model.losses import contribution, dependence, reconstruction, voted
from model.positions import documents
from model.routing import Rows, reads_known, rows
from model.terms import N_NOISE_BINS, NLL_BINS, Term
from model.tiles import Pass
from model.train_config import ObjectiveConfig
from model.vocabulary import Nats, nats


@dataclass(frozen=True)
class Example:
    """One micro-batch as the network meets it."""

    batch: Batch
    asked: Corrupted
    forcing: Forcing
    sparse: bool
    """Whether the heads keep their top-k alone."""

    aim: Aim | None = None
    """Where a steering step injects which concept; None in every other step."""


class Objective(nn.Module):
    """Network and loss in one module: an example in, one sum per term out (S)."""

    def __init__(self, lm: LanguageModel, config: ObjectiveConfig) -> None:
        super().__init__()
        self.lm = lm
        self.config = config

    def forward(self, example: Example) -> Tensor:
        asked = example.asked
        hidden_BTD = self._hidden(example)
        target_N = asked.target_BT[asked.masked_BT]
        if self.lm.bottleneck is None:
            found = self._nats(hidden_BTD[asked.masked_BT], target_N, asked)
            return _stacked({Term.LANGUAGE: found.loss} | _nll_reports(found.nll_N, asked))

        with _float32(hidden_BTD):
            parts, sums = self._parts(example, hidden_BTD)
            state_ND = recompose(parts, self._forcing(example), asked.masked_BT)
        found = self._nats(state_ND, target_N, asked)
        if example.aim is not None:
            sums = self._steered(example.aim, asked, parts, state_ND)
            # The unknown head learns nothing here, but a weight without a gradient is left alone by
            # torch, stepped by its momentum at ZeRO 1 and 2, and by its last gradient at 3.
            sums |= {Term.LANGUAGE: found.loss + 0.0 * parts.unknown_ND.sum()}
            return _stacked(sums | _nll_reports(found.nll_N, asked))
        two_terms = self.config.independence == "two_term"
        with _float32(hidden_BTD):
            sums |= {
                Term.LANGUAGE: found.loss,
                Term.RECONSTRUCTION: reconstruction(parts),
                Term.INDEPENDENCE: dependence(parts, asked.masked_BT, with_residual=two_terms),
            }
            row_ND = F.embedding(target_N, self.lm.head_VD)
            sums |= self._part_reports(parts, row_ND) | _nll_reports(found.nll_N, asked)
            return _stacked(sums)

    def _hidden(self, example: Example) -> Tensor:
        noisy_BT, aim = example.asked.noisy_BT, example.aim
        injected = None if aim is None else injection(self.lm, aim)
        apart = self.config.document_mask
        documents_BP = documents(noisy_BT, self.lm.config.bos_id) if apart else None
        return self.lm.hidden(noisy_BT, injection=injected, documents_BP=documents_BP)

    def _steered(
        self, aim: Aim, asked: Corrupted, parts: Parts, state_ND: Tensor
    ) -> dict[Term, Tensor]:
        """What a steering step asks for besides the tokens."""
        aimed_N = aim.aimed_BT[asked.masked_BT]
        return {
            Term.RESPOND: respond(self.lm, parts.hidden_ND[aimed_N], aim),
            Term.EXPRESS: express(self.lm, state_ND[aimed_N], aim),
        }

    def _forcing(self, example: Example) -> Forcing:
        """What was drawn; a network without a residual has none to keep anywhere."""
        if self.lm.concepts.config.residual:
            return example.forcing
        everywhere_BT = torch.ones_like(example.asked.masked_BT)
        return replace(example.forcing, residual_dropped_BT=everywhere_BT)

    def _parts(self, example: Example, hidden_BTD: Tensor) -> tuple[Parts, dict[Term, Tensor]]:
        """The parts of the masked rows, and the sums that are made on the way."""
        bottleneck, batch = self.lm.concepts, example.batch
        masked_BT = example.asked.masked_BT
        votes_BT = _votes(batch, example.asked, self.config) & (example.aim is None)
        reading = rows(batch, masked_BT, votes_BT)
        read_ND = hidden_BTD.flatten(0, 1)[reading.place_N].float()
        hidden_ND = read_ND[reading.masked_M]
        truth_CD = pooled_labels(bottleneck.known.embedding_KD, batch.concepts_CM)
        # One more chunk, without labels, for the rows that belong to none (−1).
        truth_CD, teaching_C = F.pad(truth_CD, (0, 0, 0, 1)), F.pad(supervised(batch), (0, 1))
        chunk_N = batch.chunk_BT[masked_BT]
        supervised_N = teaching_C[chunk_N]
        # The unknown head learns from its own losses alone, and they stop at its input.
        if example.sparse:
            known_ND, sums = self._known_top(read_ND, hidden_ND, reading)
            unknown_ND = bottleneck.unknown.combine(bottleneck.unknown.top(hidden_ND.detach()))
        else:
            graded_N = reads_known(self._forcing(example), supervised_N, masked_BT)
            known_ND, sums = self._known_dense(read_ND, hidden_ND, reading, graded_N)
            unknown_ND = bottleneck.unknown.dense(hidden_ND.detach())
        return Parts(hidden_ND, known_ND, unknown_ND, truth_CD[chunk_N], supervised_N), sums

    def _known_dense(
        self, read_ND: Tensor, hidden_ND: Tensor, reading: Rows, graded_N: Tensor
    ) -> tuple[Tensor, dict[Term, Tensor]]:
        """The dense known part, with a gradient only where there can be one, and L_c."""
        known = self.lm.concepts.known
        found = known.vote(read_ND, reading.votes, reading.n_summed)
        sum_ND = found.sum_NE[reading.masked_M]
        # Also where no row is graded: ranks must agree on which weights have a gradient.
        graded_ND = known.graded(hidden_ND[graded_N], sum_ND[graded_N])
        known_ND = sum_ND.index_put((graded_N,), graded_ND)
        return known_ND, _voted(found) | {Term.ACTIVE_KNOWN: found.n_active}

    def _known_top(
        self, read_ND: Tensor, hidden_ND: Tensor, reading: Rows
    ) -> tuple[Tensor, dict[Term, Tensor]]:
        """The known part of the strongest concepts alone, and L_c over all."""
        known = self.lm.concepts.known
        voting_ND = read_ND[len(read_ND) - len(reading.votes) :]
        found = known.vote(voting_ND, reading.votes, n_summed=0)
        top = known.top(hidden_ND)
        n_active = (top.activations.detach() > 0.5).sum().float()
        return known.combine(top), _voted(found) | {Term.ACTIVE_KNOWN: n_active}

    @torch.no_grad()
    def _part_reports(self, parts: Parts, row_ND: Tensor) -> dict[Term, Tensor]:
        """Norms of the parts, and the named ones' share of the target's logit."""
        if not self.lm.concepts.config.residual:
            parts = replace(parts, hidden_ND=parts.known_ND + parts.unknown_ND)
        residual_ND = parts.hidden_ND - parts.known_ND - parts.unknown_ND
        return {
            Term.CONTRIBUTION: contribution(parts, row_ND),
            Term.NORM_KNOWN: parts.known_ND.norm(dim=1).sum(),
            Term.NORM_UNKNOWN: parts.unknown_ND.norm(dim=1).sum(),
            Term.NORM_RESIDUAL: residual_ND.norm(dim=1).sum(),
        }

    def _nats(self, state_ND: Tensor, target_N: Tensor, asked: Corrupted) -> Nats:
        return nats(self.lm.head_VD, state_ND, target_N, self._weights(asked))

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


def _stacked(sums: dict[Term, Tensor]) -> Tensor:
    """One vector of all terms (S); those not given are zero."""
    zero = sums[Term.LANGUAGE].new_zeros(())
    return torch.stack([sums.get(term, zero) for term in Term])


def _voted(found: Pass) -> dict[Term, Tensor]:
    """What the votes of a pass came to."""
    return {
        Term.CONCEPT: found.loss,
        Term.LABELLED: found.labelled,
        Term.UNLABELLED: found.unlabelled,
    }


@torch.no_grad()
def _nll_reports(nll_N: Tensor, asked: Corrupted) -> dict[Term, Tensor]:
    """Nats of all rows, and by the rate they were masked at."""
    bins = nll_N.new_zeros(N_NOISE_BINS).index_add(0, _noise_bin(asked), nll_N)
    return {Term.NLL: nll_N.sum()} | dict(zip(list(Term)[NLL_BINS], bins, strict=True))


def _noise_bin(asked: Corrupted) -> Tensor:
    """Bin of the rate that each row was masked at (N)."""
    bin_BT = (asked.rate_BT * N_NOISE_BINS).ceil().long() - 1
    return bin_BT.clamp(0, N_NOISE_BINS - 1)[asked.masked_BT]


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
            n_language = float(batch.askable(lm.config).sum())
    counts_S = torch.zeros(len(Term))
    counts_S[Term.LANGUAGE], counts_S[Term.NLL] = n_language, n_rows
    counts_S[NLL_BINS] = torch.bincount(_noise_bin(example.asked), minlength=N_NOISE_BINS).float()
    if lm.bottleneck is None:
        return counts_S
    if example.aim is not None:
        counts_S[[Term.RESPOND, Term.EXPRESS]] = float(len(example.aim))
        return counts_S
    chunk_N = batch.chunk_BT[_votes(batch, example.asked, config)]
    chunk_N = chunk_N[supervised(batch)[chunk_N]]
    counts_S[Term.CONCEPT] = float(voted(chunk_N, len(batch.labelled_C)).sum())
    n_labelled = int((batch.concepts_CM[chunk_N] >= 0).sum())
    n_pairs = len(chunk_N) * lm.bottleneck.config.n_known
    counts_S[Term.LABELLED], counts_S[Term.UNLABELLED] = n_labelled, n_pairs - n_labelled
    counts_S[Term.INDEPENDENCE] = float((masked_BT.sum(dim=1) >= 2).sum())
    counts_S[Term.RECONSTRUCTION] = n_rows
    counts_S[Term.CONTRIBUTION : Term.ACTIVE_KNOWN + 1] = n_rows
    return counts_S


def weights(config: ObjectiveConfig, counts_S: Tensor) -> Tensor:
    """What each sum is multiplied by in the loss (S): λ over the denominator, 0 for reports."""
    scale_S = torch.zeros(len(Term))
    scale_S[Term.LANGUAGE] = 1.0
    scale_S[Term.CONCEPT] = config.concept_weight
    scale_S[Term.RECONSTRUCTION] = config.reconstruction_weight
    scale_S[Term.INDEPENDENCE] = config.independence_weight
    scale_S[Term.RESPOND] = config.respond_weight
    scale_S[Term.EXPRESS] = config.express_weight
    return torch.where(counts_S > 0, scale_S / counts_S.clamp(min=1e-9), 0.0)


def _votes(batch: Batch, asked: Corrupted, config: ObjectiveConfig) -> Tensor:
    """Tokens that vote on their chunk's concepts (B, T)."""
    return (batch.chunk_BT >= 0) & (asked.masked_BT | (config.or_tokens == "all"))


def _per_block(masked_BT: Tensor, block: int) -> Tensor:
    """Masked tokens in each block of each sequence, (B, blocks)."""
    spare = -masked_BT.shape[1] % block
    return F.pad(masked_BT, (0, spare)).view(len(masked_BT), -1, block).sum(dim=2).float()
