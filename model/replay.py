"""Any commit again: the pass of the network that chose a token, on changed inputs (paper §6.1).

A commit is replayed on the snapshot its group saw, up to the end of its block: what lies behind is
invisible to it. The last layer runs at the positions read off alone, and of the head only the rows
that name their tokens. Commits of one group share their snapshot, and so its forward pass.

Steering adds to the states what it added then; that is constant, whatever the inputs. Under
guidance a logit is (s + 1) c − s u, a weighted sum of two passes, and so is all that is linear in
the logit; u has the same steering, and none of the given inputs.

Shape suffixes used in this file:
    S snapshot   P commit of a snapshot   T position   D width   J pass: a snapshot, its inputs
    scaled from [MASK] (0) to what they are (1)   B commit asked for
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model.language_model import LanguageModel
from model.steering import turns
from model.trace import Trace
from model.transformer import Injection

SAME_LOGIT = 1e-2
"""A replayed logit this far from the recorded one, relative to it above 1, is of other weights."""


@dataclass(frozen=True)
class Branch:
    """A pass of the network, and its share in the logit."""

    share: float
    ids_ST: Tensor


@dataclass(frozen=True)
class Replay:
    """Snapshots of one length, and the commits read off each of them, as many of all."""

    branches: tuple[Branch, ...]
    """The first sees all that any sees."""

    injection: Injection | None
    commit_SP: Tensor
    """int64: of the trace."""

    readout_SP: Tensor
    token_SP: Tensor
    mask_id: int

    @property
    def inputs_ST(self) -> Tensor:
        """Positions that hold something: not [MASK]."""
        return self.branches[0].ids_ST != self.mask_id


@dataclass(frozen=True)
class Slopes:
    """Logits, and how fast each grows with the scale of each input."""

    logit_JP: Tensor
    slope_JPT: Tensor
    """dℓ / dx of the input alone: Σ_D (e − e_mask) ⊙ ∇_e ℓ; exactly 0 where the input is [MASK]."""


def replays(lm: LanguageModel, trace: Trace, commits: Sequence[int]) -> Iterator[Replay]:
    """These commits of a trace, snapshots of one length and as many commits together. Each commit
    is checked: it must give the recorded logit again."""
    _check(lm, trace, commits)
    by_group: dict[int, list[int]] = {}
    for commit in dict.fromkeys(commits):
        by_group.setdefault(int(trace.group_N[commit]), []).append(commit)
    alike: dict[tuple[int, int], list[int]] = {}
    for group, mine in by_group.items():
        alike.setdefault((int(trace.seen_N[mine[0]]), len(mine)), []).append(group)
    for groups in alike.values():
        replay = _replay(trace, groups, torch.tensor([by_group[group] for group in groups]))
        _check_logits(lm, trace, replay)
        yield replay


def _replay(trace: Trace, groups: Sequence[int], commit_SP: Tensor) -> Replay:
    seen = [trace.snapshot(group) for group in groups]
    branches = [Branch(trace.guidance + 1, torch.stack([one.ids_T for one in seen]))]
    if trace.guidance:
        bare_ST = torch.stack([trace.without_prompt(one).ids_T for one in seen])
        branches.append(Branch(-trace.guidance, bare_ST))
    return Replay(
        branches=tuple(branches),
        injection=_injection(trace, groups, branches[0].ids_ST),
        commit_SP=commit_SP,
        readout_SP=trace.readout_N[commit_SP],
        token_SP=trace.token_N[commit_SP],
        mask_id=trace.mask_id,
    )


def _injection(trace: Trace, groups: Sequence[int], ids_ST: Tensor) -> Injection | None:
    """What steering added when each group was committed."""
    if trace.steering is None:
        return None
    where_ST = torch.stack(
        [
            turns(ids_T == trace.mask_id, trace.readout_N, trace.group_N, group)
            for group, ids_T in zip(groups, ids_ST, strict=True)
        ]
    )
    written_S = torch.searchsorted(trace.group_N, torch.tensor(groups))
    return trace.steering.injection(torch.zeros_like(written_S), where_ST, written_S)


def slopes(
    lm: LanguageModel, replay: Replay, snapshot_J: Tensor, scale_JT: Tensor, at_once: int
) -> Slopes:
    """Logits and slopes of snapshots whose inputs are scaled; `at_once` of them run together."""
    parts = [
        _slopes(lm, replay, snapshot_J[start : start + at_once], scale_JT[start : start + at_once])
        for start in range(0, len(snapshot_J), at_once)
    ]
    return Slopes(
        torch.cat([part.logit_JP for part in parts]), torch.cat([part.slope_JPT for part in parts])
    )


def _slopes(lm: LanguageModel, replay: Replay, snapshot_J: Tensor, scale_JT: Tensor) -> Slopes:
    n_commits = replay.commit_SP.shape[1]
    logit_JP = torch.zeros(len(snapshot_J), n_commits)
    slope_JPT = torch.zeros(len(snapshot_J), n_commits, scale_JT.shape[1])
    for branch in replay.branches:
        mask_D, embedded_JTD = _embedded(lm, replay.mask_id, branch.ids_ST[snapshot_J])
        # Interpolated from the nearer end, so that scale 1 is the input itself, to the last bit.
        path_JTD = torch.lerp(mask_D, embedded_JTD, scale_JT[..., None]).requires_grad_()
        said_JP = _logits(lm, replay, snapshot_J, path_JTD)
        logit_JP += branch.share * said_JP.detach()
        step_JTD = branch.share * (embedded_JTD - mask_D)
        for at in range(n_commits):
            (gradient_JTD,) = torch.autograd.grad(
                said_JP[:, at].sum(), path_JTD, retain_graph=at + 1 < n_commits
            )
            slope_JPT[:, at] += (gradient_JTD * step_JTD).sum(-1)
    return Slopes(logit_JP, slope_JPT)


@torch.no_grad()
def logits(
    lm: LanguageModel, replay: Replay, snapshot_J: Tensor, kept_JT: Tensor, at_once: int
) -> Tensor:
    """Logits (J, P) of snapshots of which only the inputs in `kept` are left; others are [MASK].

    Steering stays as it was: a position masked here is steered as the input it replaces.
    """
    found = []
    for start in range(0, len(snapshot_J), at_once):
        rows = snapshot_J[start : start + at_once]
        kept_JT1 = kept_JT[start : start + at_once, :, None]
        logit_JP = torch.zeros(len(rows), replay.commit_SP.shape[1])
        for branch in replay.branches:
            mask_D, embedded_JTD = _embedded(lm, replay.mask_id, branch.ids_ST[rows])
            changed_JTD = torch.where(kept_JT1, embedded_JTD, mask_D)
            logit_JP += branch.share * _logits(lm, replay, rows, changed_JTD)
        found.append(logit_JP)
    return torch.cat(found)


def _embedded(lm: LanguageModel, mask_id: int, ids_JT: Tensor) -> tuple[Tensor, Tensor]:
    """[MASK] (1, 1, D) and the inputs (J, T, D), in float32."""
    mask_D = lm.embedding.weight[mask_id].detach().float()
    return mask_D[None, None], lm.embedding(ids_JT).detach().float()


def _logits(lm: LanguageModel, replay: Replay, snapshot_J: Tensor, embedded_JTD: Tensor) -> Tensor:
    injection = replay.injection and Injection(
        {layer: added_STD[snapshot_J] for layer, added_STD in replay.injection.by_layer.items()}
    )
    hidden_JPD = lm.backbone.read(embedded_JTD, replay.readout_SP[snapshot_J], injection)
    state_JPD = lm.composed(hidden_JPD)
    logit_JP: Tensor = (state_JPD * lm.head_VD[replay.token_SP[snapshot_J]]).sum(-1)
    return logit_JP


def _check(lm: LanguageModel, trace: Trace, commits: Sequence[int]) -> None:
    outside = [commit for commit in commits if not 0 <= commit < len(trace.token_N)]
    if outside or not len(commits):
        raise ValueError(
            f"commits {list(commits)} to explain, but the trace has commits "
            f"0 … {len(trace.token_N) - 1}; name some of them"
        )
    vocab_size, width = lm.embedding.weight.shape
    if trace.mask_id != lm.config.mask_id or trace.state_ND.shape[1] != width:
        raise ValueError(
            f"a trace of a network of width {trace.state_ND.shape[1]} with <|mask|> {trace.mask_id}"
            f" cannot be replayed by one of width {width} with <|mask|> {lm.config.mask_id}; "
            f"load the checkpoint that generated it"
        )
    if int(trace.ids_T.max()) >= vocab_size:
        raise ValueError(
            f"the trace holds token {int(trace.ids_T.max())}, but the network knows {vocab_size}; "
            f"load the checkpoint that generated it"
        )


def _check_logits(lm: LanguageModel, trace: Trace, replay: Replay) -> None:
    snapshots_S = torch.arange(len(replay.inputs_ST))
    found_SP = logits(lm, replay, snapshots_S, replay.inputs_ST, at_once=8)
    found_B, recorded_B = found_SP.flatten(), trace.logit_N[replay.commit_SP].flatten()
    if not torch.isfinite(found_B).all():
        raise ValueError("the network's logits are not finite; are the weights damaged?")
    error_B = (found_B - recorded_B).abs() / recorded_B.abs().clamp_min(1.0)
    if error_B.max() > SAME_LOGIT:
        at = int(error_B.argmax())
        raise ValueError(
            f"commit {int(replay.commit_SP.flatten()[at])} was made with logit "
            f"{float(recorded_B[at]):.4f} and is replayed with {float(found_B[at]):.4f}: the trace "
            f"is not this network's; load the checkpoint that generated it"
        )
