"""The concept bottleneck: every logit is a sum over named parts (paper §5.3, eq. 5-8).

    known k̂ = Σ σ(f(h))_c K_c     unknown û = Σ σ(g(h))_j (A B)_j     residual ε = h − k̂ − û
    hidden  =  known + unknown + residual  ->  unembed

Outside training each head keeps its top-k activations and the others are exactly zero; in training
the sums are dense until the anneal phase. Heads compute in float32 whatever the backbone does, and
make logits a tile at a time: nothing of the size tokens × concepts outlives one (`model.topk`,
`model.tiles`). `logits` is for readers of a few rows or columns.

Shape suffixes used in this file:
    B batch   T position   D width   K known concept   U unknown concept   R rank   k concepts kept
    N row   Q width of a query   E width of a summed embedding (both D, or R in rank space)
    leading dimensions are free where a name begins with the last one: (…, D)
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import BottleneckConfig
from model.tiles import Pass, Votes, concept_pass, concept_sum
from model.topk import TopConcepts, top_concepts, weighted_rows

RAREST = 1e-6
"""Prevalences below this start their concept as if they were this."""

_GATHERED = 1 << 23
"""Numbers of concept embeddings gathered at once: 32 MiB."""


@dataclass(frozen=True)
class Decomposition:
    """Hidden states, taken apart. `total` restores them exactly while `residual` is kept."""

    known_BTD: Tensor
    unknown_BTD: Tensor
    residual_BTD: Tensor
    top: TopConcepts
    top_unknown: TopConcepts

    @property
    def total_BTD(self) -> Tensor:
        return self.known_BTD + self.unknown_BTD + self.residual_BTD


@dataclass(frozen=True)
class Tables:
    """What a head sums over, in float32; a row a concept."""

    predictor_KQ: Tensor
    bias_K: Tensor | None
    embedding_KE: Tensor


class ConceptHead(nn.Module, ABC):
    """What every head does with its tables: logits, the strongest concepts, the sum over all."""

    top_k: int

    @abstractmethod
    def tables(self) -> Tables:
        """The head's own."""

    def query(self, hidden_D: Tensor) -> Tensor:
        """What the predictor is multiplied with, (…, Q)."""
        return hidden_D.float()

    def widen(self, sum_E: Tensor) -> Tensor:
        """A sum of embeddings as a part of the state, (…, D)."""
        return sum_E

    def narrow(self, row_D: Tensor) -> Tensor:
        """A direction in the space of the embeddings, (…, E): `widen` turned round."""
        return row_D.float()

    def contributions(self, top: TopConcepts, row_ND: Tensor) -> Tensor:
        """What each kept concept adds to the logit (N, k) of a row of the head (N, D), eq. 22."""
        row_NE, table_KE = self.narrow(row_ND), self.tables().embedding_KE
        product_Nk = torch.empty_like(top.activations)
        for part in _slices(len(row_NE), top.ids.shape[-1] * table_KE.shape[1]):
            gathered_NkE = F.embedding(top.ids[part], table_KE)
            product_Nk[part] = torch.einsum("nke,ne->nk", gathered_NkE, row_NE[part])
        return top.activations * product_Nk

    def logits(self, hidden_D: Tensor) -> Tensor:
        """Concept logits (…, K) in float32, uncut."""
        tables = self.tables()
        return F.linear(self.query(hidden_D), tables.predictor_KQ, tables.bias_K)

    def top(self, hidden_D: Tensor) -> TopConcepts:
        """The strongest concepts of each state."""
        tables = self.tables()
        query_Q = self.query(hidden_D)
        return top_concepts(query_Q, tables.predictor_KQ, tables.bias_K, self.top_k)

    def combine(self, top: TopConcepts) -> Tensor:
        """Weighted sum of the kept embeddings (…, D)."""
        return self.widen(weighted_rows(self.tables().embedding_KE, top))

    def dense(self, hidden_ND: Tensor) -> Tensor:
        """Weighted sum of all embeddings (N, D)."""
        tables, query_NQ = self.tables(), self.query(hidden_ND)
        return self.widen(
            concept_sum(query_NQ, tables.predictor_KQ, tables.bias_K, tables.embedding_KE)
        )

    def rows(self, ids: Tensor) -> Tensor:
        """Embeddings (…, D) of some concepts; the full table is never built."""
        return self.widen(F.embedding(ids, self.tables().embedding_KE))


class KnownHead(ConceptHead):
    """Linear predictor and embedding of the concepts Atlas labels."""

    def __init__(self, config: BottleneckConfig, width: int) -> None:
        super().__init__()
        self.top_k = config.top_k
        self.predictor_KD = nn.Parameter(torch.empty(config.n_known, width))
        self.embedding_KD = nn.Parameter(torch.empty(config.n_known, width))
        bias = torch.zeros(config.n_known) if config.known_bias else None
        self.bias_K = nn.Parameter(bias) if bias is not None else None

    def tables(self) -> Tables:
        bias_K = None if self.bias_K is None else self.bias_K.float()
        return Tables(self.predictor_KD.float(), bias_K, self.embedding_KD.float())

    def vote(self, hidden_ND: Tensor, votes: Votes, n_summed: int) -> Pass:
        """The chunk-OR loss of the last rows, and the dense sum of the first without gradient."""
        tables = self.tables()
        return concept_pass(
            self.query(hidden_ND),
            tables.predictor_KQ,
            tables.bias_K,
            tables.embedding_KE,
            votes,
            n_summed,
        )

    def graded(self, hidden_ND: Tensor, sum_ND: Tensor) -> Tensor:
        """The dense sum of some rows, whose values a pass has made, now with its gradient."""
        tables = self.tables()
        return concept_sum(
            hidden_ND.float(), tables.predictor_KQ, tables.bias_K, tables.embedding_KE, sum_ND
        )

    @torch.no_grad()
    def start_at(self, prevalence_K: Tensor, tokens_per_chunk: float) -> None:
        """Set the biases so that the OR over a chunk's tokens starts at the prevalence."""
        if self.bias_K is not None:
            self.bias_K.copy_(starting_bias(prevalence_K, tokens_per_chunk))


def starting_bias(prevalence_K: Tensor, tokens_per_chunk: float) -> Tensor:
    """Biases (K) at which the OR over a chunk's tokens starts at the prevalence."""
    per_token_K = (prevalence_K.double() / tokens_per_chunk).clamp(RAREST, 0.5)
    return torch.logit(per_token_K).float()


class UnknownHead(ConceptHead):
    """Unsupervised concepts; predictor and embedding are products of two thin matrices.

    Queries and sums stay in rank space: the thin matrices are multiplied once a row.
    """

    def __init__(self, config: BottleneckConfig, width: int, rank: int) -> None:
        super().__init__()
        self.top_k = config.top_k_unknown
        self.predictor_RD = nn.Parameter(torch.empty(rank, width))
        self.predictor_UR = nn.Parameter(torch.empty(config.n_unknown, rank))
        self.embedding_UR = nn.Parameter(torch.empty(config.n_unknown, rank))
        self.embedding_RD = nn.Parameter(torch.empty(rank, width))

    def tables(self) -> Tables:
        return Tables(self.predictor_UR.float(), None, self.embedding_UR.float())

    def query(self, hidden_D: Tensor) -> Tensor:
        return F.linear(hidden_D.float(), self.predictor_RD.float())

    def widen(self, sum_E: Tensor) -> Tensor:
        return sum_E @ self.embedding_RD.float()

    def narrow(self, row_D: Tensor) -> Tensor:
        return row_D.float() @ self.embedding_RD.float().T


class DenseUnknownHead(ConceptHead):
    """Unsupervised concepts with full matrices: about 15 times the numbers at 8B (ablation J.4)."""

    def __init__(self, config: BottleneckConfig, width: int) -> None:
        super().__init__()
        self.top_k = config.top_k_unknown
        self.predictor_UD = nn.Parameter(torch.empty(config.n_unknown, width))
        self.embedding_UD = nn.Parameter(torch.empty(config.n_unknown, width))

    def tables(self) -> Tables:
        return Tables(self.predictor_UD.float(), None, self.embedding_UD.float())


class ConceptBottleneck(nn.Module):
    """Splits hidden states into known, unknown and residual parts."""

    def __init__(self, config: BottleneckConfig, width: int) -> None:
        super().__init__()
        self.config = config
        self.known = KnownHead(config, width)
        self.unknown: UnknownHead | DenseUnknownHead = (
            DenseUnknownHead(config, width)
            if config.rank is None
            else UnknownHead(config, width, config.rank)
        )

    def forward(self, hidden_BTD: Tensor) -> Decomposition:
        """The form used outside training: top-k heads, nothing dropped, nothing forced."""
        top = self.known.top(hidden_BTD)
        known_BTD = self.known.combine(top)

        # The unknown head learns from its own losses alone: it sees a detached state and enters
        # the sum detached, or the two heads trade mass and known concepts stop meaning anything.
        top_unknown = self.unknown.top(hidden_BTD.detach())
        unknown_BTD = self.unknown.combine(top_unknown)

        residual_BTD = hidden_BTD.float() - known_BTD - unknown_BTD.detach()
        if not self.config.residual:
            residual_BTD = torch.zeros_like(residual_BTD)
        return Decomposition(known_BTD, unknown_BTD, residual_BTD, top, top_unknown)


def _slices(n_rows: int, numbers_a_row: int) -> list[slice]:
    """Rows a few at a time, so that no table of gathered embeddings grows with them."""
    at_once = max(1, _GATHERED // max(1, numbers_a_row))
    return [slice(start, start + at_once) for start in range(0, n_rows, at_once)]
