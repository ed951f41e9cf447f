"""The record of one generation, from which every explanation starts (paper §5, §6.1).

A trace says in which order positions were committed, and what the network saw each time, so that
any commit can be replayed exactly: attribution explains the forward pass that chose the token.

Shape suffixes used in this file:
    T position   N commit, in order   D width   k concept recorded
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from model.steering import Steering
from model.topk import TopConcepts


@dataclass(frozen=True)
class Snapshot:
    """What the network saw when it committed a group, and where it read each token off."""

    ids_T: Tensor
    commits_N: Tensor
    """int64: which commits of the trace these are."""

    readout_N: Tensor
    """int64: positions of the states that chose the tokens."""


@dataclass(frozen=True)
class Trace:
    """One generated text. Tensors over N are in commit order."""

    ids_T: Tensor
    """int64: prompt, then every committed token; <|mask|> where nothing was committed."""

    n_prompt: int
    """Tokens before the first that was generated."""

    end: int
    """One past the last token of the text; a stop token is the last, what lies behind is void."""

    stopped: bool
    """Whether a stop token ended the text, not the limit on new tokens."""

    mask_id: int
    group_N: Tensor
    """int64, 0, 1, 2 …: commits of one forward pass share a group."""

    position_N: Tensor
    token_N: Tensor
    logit_N: Tensor
    """float32: the network's logit of the token, before penalty, temperature and suppression."""

    confidence_N: Tensor
    """float32: largest probability at the position when it was chosen."""

    state_ND: Tensor
    """float32: the state that was unembedded."""

    seen_N: Tensor
    """int64: the network saw positions 0 … seen − 1."""

    readout_N: Tensor
    """int64: position of the state: its own, or the one before in the AR families."""

    given_T: Tensor
    """bool: what was there before generation; behind the prompt too, where blanks were filled."""

    steering: Steering | None
    """What steered this row, as row 0; None where nothing did."""

    guidance: float
    """s: every logit is u + (s + 1)(c − u); 0 where nothing guided."""

    bare_ND: Tensor
    """float32: the states of u, of a network that saw no prompt; (N, 0) without guidance."""

    known: TopConcepts
    """Concepts of each state, the most active first; (N, 0) where none were asked for."""

    unknown: TopConcepts

    def __post_init__(self) -> None:
        self._check_shapes()
        groups = torch.unique_consecutive(self.group_N).tolist()
        if groups != list(range(len(groups))):
            raise ValueError(f"groups of a trace must rise from 0 without a gap, got {groups}")
        positions = self.position_N.tolist()
        if len(set(positions)) < len(positions):
            raise ValueError(f"a trace commits a position twice: {sorted(positions)}")
        if positions and min(positions) < self.n_prompt:
            raise ValueError(
                f"a trace commits position {min(positions)} of a prompt of {self.n_prompt} tokens"
            )
        if not torch.equal(self.ids_T[self.position_N], self.token_N):
            raise ValueError("a trace's text has other tokens than its commits")
        if self.given_T[self.position_N].any():
            raise ValueError("a trace commits a position that was given")
        if not torch.isfinite(self.logit_N).all():
            raise ValueError("a trace holds logits that are not finite; are the weights damaged?")

    def _check_shapes(self) -> None:
        n = len(self.group_N)
        columns = {
            "position": self.position_N, "token": self.token_N, "logit": self.logit_N,
            "confidence": self.confidence_N, "state": self.state_ND, "seen": self.seen_N,
            "readout": self.readout_N, "bare state": self.bare_ND, "known": self.known.ids,
            "unknown": self.unknown.ids,
        }  # fmt: skip
        wrong = {name: len(column) for name, column in columns.items() if len(column) != n}
        if wrong or len(self.given_T) != len(self.ids_T):
            raise ValueError(
                f"a trace of {n} commits over {len(self.ids_T)} positions has columns of other "
                f"lengths: {wrong or {'given': len(self.given_T)}}"
            )

    @property
    def n_groups(self) -> int:
        return int(self.group_N[-1]) + 1 if len(self.group_N) else 0

    @property
    def generated(self) -> list[int]:
        """Ids of the generated text, its stop token included."""
        ids: list[int] = self.ids_T[self.n_prompt : self.end].tolist()
        return ids

    def snapshot(self, group: int) -> Snapshot:
        """The sequence the network saw when it committed this group."""
        commits_N = (self.group_N == group).nonzero().squeeze(-1)
        if len(commits_N) == 0:
            raise ValueError(f"group {group} of a trace with groups 0 … {self.n_groups - 1}")
        ids_T = self.ids_T[: int(self.seen_N[commits_N[0]])].clone()
        later_N = self.position_N[(self.group_N >= group) & (self.position_N < len(ids_T))]
        ids_T[later_N] = self.mask_id
        return Snapshot(ids_T, commits_N, self.readout_N[commits_N])

    def without_prompt(self, seen: Snapshot) -> Snapshot:
        """The same with all that was given masked: what guidance compares with."""
        ids_T = seen.ids_T.masked_fill(self.given_T[: len(seen.ids_T)], self.mask_id)
        return Snapshot(ids_T, seen.commits_N, seen.readout_N)
