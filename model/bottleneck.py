"""The concept bottleneck: every logit is a sum over named parts (paper §5.3, eq. 5-8).

    known k̂ = Σ σ(f(h))_c K_c     unknown û = Σ σ(g(h))_j (A B)_j     residual ε = h − k̂ − û
    hidden  =  known + unknown + residual  ->  unembed

Outside training each head keeps its top-k activations and the others are exactly zero; in training
the sums are dense until the anneal phase. Heads compute in float32 whatever the backbone does.

Shape suffixes used in this file:
    B batch   T position   D width   K known concept   U unknown concept   R rank   k concepts kept
    leading dimensions are free where a name begins with the last one: (…, D)
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import BottleneckConfig

CLAMP = 15.0
"""Logits are cut to ± this before the sigmoid, as released, but ranked uncut: cut ones tie."""

RAREST = 1e-6
"""Prevalences below this start their concept as if they were this."""


@dataclass(frozen=True)
class TopConcepts:
    """The concepts kept at each token, strongest first; all others weigh exactly nothing."""

    ids: Tensor
    """int64 (…, k)"""

    activations: Tensor
    """float32 (…, k), in [0, 1]"""


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


class KnownHead(nn.Module):
    """Linear predictor and embedding of the concepts Atlas labels."""

    def __init__(self, config: BottleneckConfig, width: int) -> None:
        super().__init__()
        self.top_k = config.top_k
        self.predictor_KD = nn.Parameter(torch.empty(config.n_known, width))
        self.embedding_KD = nn.Parameter(torch.empty(config.n_known, width))
        bias = torch.zeros(config.n_known) if config.known_bias else None
        self.bias_K = nn.Parameter(bias) if bias is not None else None

    def logits(self, hidden_D: Tensor) -> Tensor:
        """Concept logits (…, K) in float32, uncut."""
        bias_K = None if self.bias_K is None else self.bias_K.float()
        return F.linear(hidden_D.float(), self.predictor_KD.float(), bias_K)

    def top(self, hidden_D: Tensor) -> TopConcepts:
        return top_concepts(self.logits(hidden_D), self.top_k)

    def combine(self, top: TopConcepts) -> Tensor:
        """Weighted sum of the kept embeddings (…, D)."""
        return weighted_rows(self.embedding_KD.float(), top)

    def total(self, logits_K: Tensor, *, sparse: bool) -> Tensor:
        """Weighted sum (…, D) over the top-k, or over all concepts, from their logits."""
        if sparse:
            return self.combine(top_concepts(logits_K, self.top_k))
        return activations(logits_K) @ self.embedding_KD.float()

    @torch.no_grad()
    def start_at(self, prevalence_K: Tensor, tokens_per_chunk: float) -> None:
        """Set the biases so that the OR over a chunk's tokens starts at the prevalence."""
        if self.bias_K is not None:
            per_token_K = (prevalence_K.double() / tokens_per_chunk).clamp(RAREST, 0.5)
            self.bias_K.copy_(torch.logit(per_token_K))


class UnknownHead(nn.Module):
    """Unsupervised concepts; predictor and embedding are products of two thin matrices."""

    def __init__(self, config: BottleneckConfig, width: int, rank: int) -> None:
        super().__init__()
        self.top_k = config.top_k_unknown
        self.predictor_RD = nn.Parameter(torch.empty(rank, width))
        self.predictor_UR = nn.Parameter(torch.empty(config.n_unknown, rank))
        self.embedding_UR = nn.Parameter(torch.empty(config.n_unknown, rank))
        self.embedding_RD = nn.Parameter(torch.empty(rank, width))

    def logits(self, hidden_D: Tensor) -> Tensor:
        """Concept logits (…, U) in float32, uncut."""
        thin_R = F.linear(hidden_D.float(), self.predictor_RD.float())
        return F.linear(thin_R, self.predictor_UR.float())

    def top(self, hidden_D: Tensor) -> TopConcepts:
        return top_concepts(self.logits(hidden_D), self.top_k)

    def combine(self, top: TopConcepts) -> Tensor:
        """Weighted sum of the kept embeddings (…, D); rank space until the last product."""
        return weighted_rows(self.embedding_UR.float(), top) @ self.embedding_RD.float()

    def total(self, logits_U: Tensor, *, sparse: bool) -> Tensor:
        """Weighted sum (…, D) over the top-k, or over all concepts, from their logits."""
        if sparse:
            return self.combine(top_concepts(logits_U, self.top_k))
        return (activations(logits_U) @ self.embedding_UR.float()) @ self.embedding_RD.float()

    def rows(self, ids: Tensor) -> Tensor:
        """Embeddings (…, D) of some unknown concepts; the full table is never built."""
        return F.embedding(ids, self.embedding_UR.float()) @ self.embedding_RD.float()


class DenseUnknownHead(nn.Module):
    """Unsupervised concepts with full matrices: about 15 times the numbers at 8B (ablation J.4)."""

    def __init__(self, config: BottleneckConfig, width: int) -> None:
        super().__init__()
        self.top_k = config.top_k_unknown
        self.predictor_UD = nn.Parameter(torch.empty(config.n_unknown, width))
        self.embedding_UD = nn.Parameter(torch.empty(config.n_unknown, width))

    def logits(self, hidden_D: Tensor) -> Tensor:
        """Concept logits (…, U) in float32, uncut."""
        return F.linear(hidden_D.float(), self.predictor_UD.float())

    def top(self, hidden_D: Tensor) -> TopConcepts:
        return top_concepts(self.logits(hidden_D), self.top_k)

    def combine(self, top: TopConcepts) -> Tensor:
        """Weighted sum of the kept embeddings (…, D)."""
        return weighted_rows(self.embedding_UD.float(), top)

    def total(self, logits_U: Tensor, *, sparse: bool) -> Tensor:
        """Weighted sum (…, D) over the top-k, or over all concepts, from their logits."""
        if sparse:
            return self.combine(top_concepts(logits_U, self.top_k))
        return activations(logits_U) @ self.embedding_UD.float()

    def rows(self, ids: Tensor) -> Tensor:
        """Embeddings (…, D) of some unknown concepts."""
        return F.embedding(ids, self.embedding_UD.float())


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


def activations(logits: Tensor) -> Tensor:
    """σ(logits), with the released cut."""
    return logits.clamp(-CLAMP, CLAMP).sigmoid()


def top_concepts(logits: Tensor, k: int) -> TopConcepts:
    """The k largest logits of the last axis, as activations."""
    kept = logits.topk(k, dim=-1)
    return TopConcepts(kept.indices, activations(kept.values))


def weighted_rows(table: Tensor, top: TopConcepts) -> Tensor:
    """Σ activation · table[id] over the kept concepts, without a (tokens, k, D) tensor."""
    k = top.ids.shape[-1]
    bags = F.embedding_bag(
        top.ids.reshape(-1, k),
        table,
        per_sample_weights=top.activations.reshape(-1, k),
        mode="sum",
    )
    return bags.view(*top.ids.shape[:-1], table.shape[-1])
