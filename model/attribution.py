"""Why a token: its concepts, exactly, and its inputs, by integrated gradients (paper §6.1).

    concepts   ℓ_y = Σ_c k_c (K_c·W_y) + û·W_y + ε·W_y                            eq. 22
    inputs     A_t = Σ_D (e_t − e_mask) ⊙ ∫₀¹ ∇_{e_t} ℓ_y(e_mask + x (e − e_mask)) dx

Both explain the forward pass that chose the token: concepts its recorded state, inputs the replayed
snapshot. The residual is ε·W_y of the bottleneck's own residual, not what the others leave, so that
the sum is a check that can fail. The baseline of inputs is the trained [MASK] embedding, the
network's own "no information"; the integral is taken with Gauss–Legendre nodes, in float32.

Integrated gradients pass the bottleneck by: while nothing is overridden, the recomposed state is
the hidden state, and the heads' detached inputs would break completeness.

Shape suffixes used in this file:
    N committed token   k concept kept   D width   B target   T position   J node
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from model.bottleneck import Decomposition
from model.language_model import LanguageModel
from model.trace import Trace


@dataclass(frozen=True)
class ConceptAttribution:
    """Signed contributions of the parts of a state to the logit of its token."""

    known_ids_Nk: Tensor
    known_Nk: Tensor
    unknown_N: Tensor
    residual_N: Tensor
    logit_N: Tensor
    """The network's own logit, which the parts must add up to."""

    @property
    def known_N(self) -> Tensor:
        return self.known_Nk.sum(-1)

    @property
    def error_N(self) -> Tensor:
        """How far the parts are from the logit."""
        return (self.known_N + self.unknown_N + self.residual_N - self.logit_N).abs()

    @property
    def shares(self) -> "Shares":
        return shares(self.known_N, self.unknown_N, self.residual_N)


@dataclass(frozen=True)
class Shares:
    """Parts of the logits of some tokens. Absolute shares add up to one, signed ones as well."""

    known: float
    unknown: float
    residual: float
    known_signed: float
    unknown_signed: float
    residual_signed: float


@torch.no_grad()
def concept_attribution(
    lm: LanguageModel, state_ND: Tensor, token_N: Tensor, logit_N: Tensor
) -> ConceptAttribution:
    """Contributions to `logit_N`, the logits of `token_N`, of the parts of the states."""
    parts: Decomposition = lm.concepts(state_ND)
    row_ND = lm.head_VD[token_N].float()
    embedding_NkD = lm.concepts.known.embedding_KD[parts.top.ids].float()
    known_Nk = parts.top.activations * torch.einsum("nkd,nd->nk", embedding_NkD, row_ND)
    return ConceptAttribution(
        parts.top.ids,
        known_Nk,
        (parts.unknown_BTD * row_ND).sum(-1),
        (parts.residual_BTD * row_ND).sum(-1),
        logit_N,
    )


def shares(known_N: Tensor, unknown_N: Tensor, residual_N: Tensor) -> Shares:
    """Shares over all tokens: sums of magnitudes, which cannot cancel, and sums with sign."""
    parts_3N = torch.stack([known_N, unknown_N, residual_N]).double()
    absolute_3 = parts_3N.abs().sum(1) / parts_3N.abs().sum().clamp_min(1e-8)
    total = parts_3N.sum()
    signed_3 = parts_3N.sum(1) / torch.where(total.abs() < 1e-8, 1e-8, total)
    return Shares(*absolute_3.tolist(), *signed_3.tolist())


@dataclass(frozen=True)
class Targets:
    """Logits to explain by their inputs: of `token_B`, read off at `readout_B` of each sequence."""

    ids_BT: Tensor
    readout_B: Tensor
    token_B: Tensor


@dataclass(frozen=True)
class InputAttribution:
    """Contribution of every input position to each target's logit; exactly 0 at [MASK]."""

    weight_BT: Tensor
    logit_B: Tensor
    """Of the sequence as it is: the replay of the recorded logit."""

    baseline_B: Tensor
    """Of a sequence of nothing but [MASK]."""

    @property
    def gap_B(self) -> Tensor:
        return self.logit_B - self.baseline_B

    @property
    def missing_B(self) -> Tensor:
        """What the contributions leave of the gap, or add to it."""
        return self.weight_BT.sum(1) - self.gap_B


def completeness_error(missing_B: Tensor, gap_B: Tensor) -> float:
    """Mean |Σ A − gap| over mean |gap|: 0 where contributions add up to the whole effect."""
    return float(missing_B.abs().mean() / gap_B.abs().mean().clamp_min(1e-8))


def targets(trace: Trace, groups: list[int]) -> Iterator[tuple[Targets, Tensor]]:
    """Commits of these groups as targets, with their indices: one batch per length of snapshot."""
    by_length: dict[int, list[tuple[Tensor, int, int]]] = {}
    for group in groups:
        seen = trace.snapshot(group)
        for commit, readout in zip(seen.commits_N.tolist(), seen.readout_N.tolist(), strict=True):
            by_length.setdefault(len(seen.ids_T), []).append((seen.ids_T, commit, readout))
    for found in by_length.values():
        ids, commits, readouts = zip(*found, strict=True)
        commit_B = torch.tensor(commits)
        batch = Targets(torch.stack(ids), torch.tensor(readouts), trace.token_N[commit_B])
        yield batch, commit_B


def integrated_gradients(
    lm: LanguageModel, wanted: Targets, *, n_nodes: int, batch_sequences: int
) -> InputAttribution:
    """Attribute each target's logit to its inputs: `n_nodes` gradients, two plain forwards."""
    embedded_BTD = lm.embedding(wanted.ids_BT).detach().float()
    baseline_D = lm.embedding.weight[lm.config.mask_id].detach().float()
    step_BTD = embedded_BTD - baseline_D
    nodes, node_weights = np.polynomial.legendre.leggauss(n_nodes)

    pairs = [(target, node) for target in range(len(wanted.token_B)) for node in range(n_nodes)]
    mean_BTD = torch.zeros_like(step_BTD)
    for start in range(0, len(pairs), batch_sequences):
        rows, at = map(list, zip(*pairs[start : start + batch_sequences], strict=True))
        x_J = torch.tensor((nodes[at] + 1) / 2, dtype=torch.float32)
        path_JTD = (baseline_D + x_J[:, None, None] * step_BTD[rows]).requires_grad_()
        logit_J = _logits(lm, path_JTD, wanted.readout_B[rows], wanted.token_B[rows])
        (gradient_JTD,) = torch.autograd.grad(logit_J.sum(), path_JTD)
        weight_J = torch.tensor(node_weights[at] / 2, dtype=torch.float32)
        mean_BTD.index_add_(0, torch.tensor(rows), weight_J[:, None, None] * gradient_JTD)
    with torch.no_grad():
        logit_B = _logits(lm, embedded_BTD, wanted.readout_B, wanted.token_B)
        nothing_BTD = baseline_D.expand_as(embedded_BTD)
        baseline_B = _logits(lm, nothing_BTD, wanted.readout_B, wanted.token_B)
    return InputAttribution((step_BTD * mean_BTD).sum(-1), logit_B, baseline_B)


def _logits(lm: LanguageModel, embedded_BTD: Tensor, readout_B: Tensor, token_B: Tensor) -> Tensor:
    hidden_BTD, _ = lm.backbone(embedded_BTD)
    state_BD = lm.composed(hidden_BTD[torch.arange(len(readout_B)), readout_B])
    logit_B: Tensor = (state_BD * lm.head_VD[token_B]).sum(-1)
    return logit_B
