"""Why a token, by its inputs: integrated gradients of its logit (paper §6.1.1).

    A_t = ∫₀¹ Σ_D (e_t − e_mask) ⊙ ∇_{e_t} ℓ dx,   at the inputs e_mask + x (e − e_mask)

What is explained is the pass that chose the token, replayed exactly. The baseline is the trained
[MASK] embedding, the network's own "no information". Positions that are [MASK] get exactly 0.

With one part, all inputs move together, and the weights add up to ℓ(x) − ℓ(all [MASK]). With more,
the inputs are dealt out, and each part moves while the others stay as they are: its weights add
up to what masking that part alone costs. One part says how the whole effect came about; many say
what the text would lose with a token (docs/decisions/0009).

The integral is a trapezoid rule, whose panels are halved until the weights of a target add up to
their effect within a tolerance: every pass is used again, and the ends of the path are the two
logits the check needs. Keys and values of unchanged context cannot be reused along a path of one
part: all of it moves.

Integrated gradients pass the bottleneck by: while nothing is overridden, the recomposed state is
the hidden state, and the heads' detached inputs would break completeness. A network without a
residual is read through `LanguageModel.composed`, with its whole gradient; but its state jumps
where another concept enters the top-k, and no gradient sees a jump. What the weights miss by then
does not vanish with more passes; it is told like any other miss.

Steering is constant along the path, and guidance a weighted sum of two logits: attribution holds
under both.

Shape suffixes used in this file:
    B target, a commit asked for   T position   S snapshot   P commit of a snapshot   G part
    X node of the path   J pass: a snapshot, a part and a node
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from model.input_attribution_config import InputAttributionConfig
from model.language_model import LanguageModel
from model.replay import Replay, replays, slopes
from model.trace import Trace

Scope = Literal["prompt", "generated", "all"]
Sign = Literal["signed", "absolute"]


@dataclass(frozen=True)
class InputAttribution:
    """Contribution of every input position to each target's logit; exactly 0 at [MASK]."""

    weight_BT: Tensor
    logit_B: Tensor
    """Of the snapshot as it is: the replay of the recorded logit."""

    gap_B: Tensor
    """What the weights must add up to: Σ over parts of ℓ(x) − ℓ(x with the part masked)."""

    missing_B: Tensor
    """Σ over parts of |Σ weights − effect of the part|: misses of parts do not cancel."""

    evaluations_B: Tensor
    """int64: points of the paths, each a pass with its gradient (two under guidance)."""

    reached_B: Tensor
    """bool: whether `missing` is within the tolerance; elsewhere the limit came first."""

    def of(self, rows: Sequence[int]) -> "InputAttribution":
        """Some of the targets."""
        chosen = list(rows)
        return InputAttribution(*(column[chosen] for column in vars(self).values()))


def attribute(
    lm: LanguageModel, trace: Trace, commits: Sequence[int], config: InputAttributionConfig
) -> InputAttribution:
    """Inputs of some commits of a trace: one row for each, in the order given, as wide as the
    trace; positions the network did not see get exactly 0, as masked ones do."""
    n_positions, by_commit = len(trace.ids_T), {}
    for replay in replays(lm, trace, commits):
        found = _integrated(lm, replay, config)
        for at in np.ndindex(*replay.commit_SP.shape):
            weight_T = torch.zeros(n_positions)
            weight_T[: replay.inputs_ST.shape[1]] = found.weight_SPT[at]
            by_commit[int(replay.commit_SP[at])] = (
                weight_T, found.logit_SP[at], found.gap_SP[at], found.missing_SP[at],
                found.evaluations_S[at[0]], found.reached_SP[at],
            )  # fmt: skip
    columns = zip(*(by_commit[commit] for commit in commits), strict=True)
    return InputAttribution(*(torch.stack(column) for column in columns))


def aggregate(found: InputAttribution, trace: Trace, *, scope: Scope, sign: Sign) -> Tensor:
    """What each position (T, of the trace) did for the targets as a whole, each an equal vote.

    A target's weights are divided by their absolute sum over the scope and averaged; outside the
    scope everything is 0. A target that owes nothing to the scope votes 0.
    """
    generated_T = torch.zeros(len(trace.ids_T), dtype=torch.bool)
    generated_T[trace.position_N] = True
    everywhere_T = torch.ones_like(generated_T)
    inside_T = {"prompt": trace.given_T, "generated": generated_T, "all": everywhere_T}[scope]
    vote_BT = votes(found.weight_BT, inside_T)
    return (vote_BT.abs() if sign == "absolute" else vote_BT).mean(0)


def votes(weight_BT: Tensor, inside_T: Tensor) -> Tensor:
    """Each target's weights inside a scope, as parts of their absolute sum; 0 outside."""
    scoped_BT = weight_BT * inside_T
    return scoped_BT / scoped_BT.abs().sum(1, keepdim=True).clamp_min(1e-8)


def completeness_error(missing_B: Tensor, gap_B: Tensor) -> float:
    """Mean |Σ A − gap| over mean |gap|: 0 where contributions add up to the whole effect."""
    return float(missing_B.abs().mean() / gap_B.abs().mean().clamp_min(1e-8))


@dataclass(frozen=True)
class _Integrated:
    weight_SPT: Tensor
    logit_SP: Tensor
    gap_SP: Tensor
    missing_SP: Tensor
    reached_SP: Tensor
    evaluations_S: Tensor


def _integrated(lm: LanguageModel, replay: Replay, config: InputAttributionConfig) -> _Integrated:
    """Halve the panels of each snapshot's paths until all its commits add up."""
    member_SGT = _parts(replay.inputs_ST, config.n_parts)
    rows_S, n_parts = torch.arange(len(member_SGT)), member_SGT.shape[1]
    panels, most = config.panels
    whole = slopes(lm, replay, rows_S, torch.ones(replay.inputs_ST.shape), config.batch_sequences)
    start = _along(lm, replay, rows_S, member_SGT, torch.arange(panels) / panels, config)
    ends_SGPT = (whole.slope_JPT[:, None] * member_SGT[:, :, None] + start.slope_SGXPT[:, :, 0]) / 2
    weight_SGPT = (ends_SGPT + start.slope_SGXPT[:, :, 1:].sum(2)) / panels
    effect_SGP = whole.logit_JP[:, None] - start.logit_SGXP[:, :, 0]
    evaluations_S = torch.full_like(rows_S, 1 + n_parts * panels)
    while True:
        missing_SP = (weight_SGPT.sum(-1) - effect_SGP).abs().sum(1)
        reached_SP = missing_SP <= config.tolerance * effect_SGP.abs().sum(1)
        open_S = (~reached_SP).any(1).nonzero().squeeze(-1)
        if not len(open_S) or 2 * panels > most:
            return _Integrated(
                weight_SGPT.sum(1), whole.logit_JP, effect_SGP.sum(1), missing_SP, reached_SP,
                evaluations_S,
            )  # fmt: skip
        between_X = (torch.arange(panels) + 0.5) / panels
        more = _along(lm, replay, open_S, member_SGT[open_S], between_X, config)
        added_SGPT = more.slope_SGXPT.sum(2) / panels
        weight_SGPT[open_S] = (weight_SGPT[open_S] + added_SGPT) / 2
        evaluations_S[open_S] += n_parts * panels
        panels *= 2


@dataclass(frozen=True)
class _Along:
    logit_SGXP: Tensor
    slope_SGXPT: Tensor
    """Of the members of each part; 0 for the others."""


def _along(
    lm: LanguageModel, replay: Replay, rows_S: Tensor, member_SGT: Tensor, node_X: Tensor,
    config: InputAttributionConfig,
) -> _Along:  # fmt: skip
    """Every part moved to every node, the others left as they are."""
    n_snapshots, n_parts, n_positions = member_SGT.shape
    moved_SGX1T = member_SGT[:, :, None, None]
    scale_SGX1T = torch.where(moved_SGX1T, node_X[:, None, None], 1.0)
    snapshot_J = rows_S.repeat_interleave(n_parts * len(node_X))
    found = slopes(
        lm, replay, snapshot_J, scale_SGX1T.reshape(-1, n_positions), config.batch_sequences
    )
    shape = (n_snapshots, n_parts, len(node_X), -1)
    slope_SGXPT = found.slope_JPT.reshape(*shape, n_positions) * moved_SGX1T
    return _Along(found.logit_JP.reshape(shape), slope_SGXPT)


def _parts(inputs_ST: Tensor, n_parts: int) -> Tensor:
    """Which inputs each part has (S, G, T): dealt in turn, so that neighbours, which most often
    say the same, are in different parts."""
    order_ST = inputs_ST.cumsum(1) - 1
    part_G = torch.arange(min(n_parts, int(inputs_ST.sum(1).max())))
    dealt_SGT = (order_ST % len(part_G))[:, None] == part_G[:, None]
    return dealt_SGT & inputs_ST[:, None]
