"""Why a token, by its inputs: integrated gradients of its logit (paper §6.1.1).

    A_t = Σ_D (e_t − e_mask) ⊙ ∫₀¹ ∇_{e_t} ℓ_y(e_mask + x (e − e_mask)) dx

What is explained is the forward pass that chose the token: the snapshot is replayed exactly. The
baseline is the trained [MASK] embedding, the network's own "no information"; the integral is taken
with Gauss–Legendre nodes, in float32.

Integrated gradients pass the bottleneck by: while nothing is overridden, the recomposed state is
the hidden state, and the heads' detached inputs would break completeness.

Shape suffixes used in this file:
    D width   B target   T position   J node
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from model.input_attribution_config import InputAttributionConfig
from model.language_model import LanguageModel
from model.trace import Trace

Scope = Literal["prompt", "generated", "all"]
Sign = Literal["signed", "absolute"]


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

    def of(self, rows: Sequence[int]) -> "InputAttribution":
        """Some of the targets."""
        chosen = list(rows)
        return InputAttribution(*(column[chosen] for column in vars(self).values()))


def attribute(
    lm: LanguageModel, trace: Trace, commits: Sequence[int], config: InputAttributionConfig
) -> InputAttribution:
    """Inputs of some commits of a trace: one row for each, in the order given, as wide as the
    trace; positions the network did not see get exactly 0, as masked ones do."""
    outside = [commit for commit in commits if not 0 <= commit < len(trace.token_N)]
    if outside or not len(commits):
        raise ValueError(
            f"commits {list(commits)} to attribute, but the trace has commits "
            f"0 … {len(trace.token_N) - 1}"
        )
    row_of = {commit: row for row, commit in enumerate(commits)}
    weight_BT = torch.zeros(len(commits), len(trace.ids_T))
    logit_B, baseline_B = torch.zeros(len(commits)), torch.zeros(len(commits))
    groups = sorted(set(trace.group_N[list(commits)].tolist()))
    for wanted, commit_B in targets(trace, groups):
        kept = [at for at, commit in enumerate(commit_B.tolist()) if commit in row_of]
        rows = [row_of[int(commit_B[at])] for at in kept]
        found = integrated_gradients(
            lm,
            Targets(wanted.ids_BT[kept], wanted.readout_B[kept], wanted.token_B[kept]),
            n_nodes=config.max_evaluations - 2,
            batch_sequences=config.batch_sequences,
        )
        weight_BT[rows, : found.weight_BT.shape[1]] = found.weight_BT
        logit_B[rows], baseline_B[rows] = found.logit_B, found.baseline_B
    return InputAttribution(weight_BT, logit_B, baseline_B)


def aggregate(found: InputAttribution, trace: Trace, *, scope: Scope, sign: Sign) -> Tensor:
    """What each position (T, of the trace) did for the targets as a whole, each an equal vote.

    A target's weights are divided by their absolute sum over the scope and averaged; outside the
    scope everything is 0. A target that owes nothing to the scope votes 0.
    """
    generated_T = torch.zeros(len(trace.ids_T), dtype=torch.bool)
    generated_T[trace.position_N] = True
    inside_T = {
        "prompt": ~generated_T & (torch.arange(len(generated_T)) < trace.n_prompt),
        "generated": generated_T,
        "all": torch.ones_like(generated_T),
    }[scope]
    weight_BT = found.weight_BT * inside_T
    vote_BT = weight_BT / weight_BT.abs().sum(1, keepdim=True).clamp_min(1e-8)
    return (vote_BT.abs() if sign == "absolute" else vote_BT).mean(0)


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
