"""Rows being written: their tokens so far, where each text ends, how each token came there.

Shape suffixes used in this file:
    B row of the batch   A rows of one cohort   T position   R commits of one step   N commits, or
    states to unembed   D width   V vocabulary   k concept recorded
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model.draws import Purpose, uniforms
from model.language_model import LanguageModel
from model.sampling_config import SamplingConfig
from model.steering import GIVEN, MASKED, Steering
from model.topk import TopConcepts
from model.trace import Trace
from model.transformer import Injection
from model.unmasking import certainty, draw, penalised


@dataclass(frozen=True)
class Commits:
    """Tokens committed in one step, or in all of them; rows in turn, positions in order."""

    rows_R: Tensor
    position_R: Tensor
    readout_R: Tensor
    seen_R: Tensor
    state_RD: Tensor
    bare_RD: Tensor
    """(R, 0) without guidance."""

    logits_RV: Tensor
    """What the token is drawn from: guided and suppressed."""


@dataclass(frozen=True)
class _Record:
    """What a trace keeps of commits."""

    rows_N: Tensor
    group_N: Tensor
    position_N: Tensor
    token_N: Tensor
    logit_N: Tensor
    confidence_N: Tensor
    state_ND: Tensor
    seen_N: Tensor
    readout_N: Tensor
    bare_ND: Tensor


class Page:
    """All rows of one call. Positions behind a row's own length are never looked at."""

    def __init__(
        self, lm: LanguageModel, prompts: Sequence[Tensor], config: SamplingConfig,
        stop_ids: Sequence[int], names: Sequence[int], seeds: Sequence[int],
        steering: Steering | None,
    ) -> None:  # fmt: skip
        self.lm, self.config, self.steering = lm, config, steering
        self.names_B, self.seeds = torch.tensor(names), seeds
        special = lm.config
        stops = sorted({special.eos_id, *stop_ids})
        self.stop_ids = torch.tensor(stops)
        self.never_ids = torch.tensor([special.bos_id, special.pad_id, special.mask_id])
        self.spared_ids = torch.cat(
            [self.stop_ids, self.never_ids, torch.tensor([special.end_of_chunk_id])]
        )
        self.n_given_B = torch.tensor([len(prompt) for prompt in prompts])
        self.end_B = self.n_given_B + config.n_new
        self.length_B = _whole_blocks(lm, self.end_B)
        n_rows, longest = len(prompts), int(self.length_B.max())
        self.ids_BT = torch.full((n_rows, longest), special.mask_id)
        self.where_BT = torch.full((n_rows, longest), MASKED)
        for row, prompt_P in enumerate(prompts):
            self.ids_BT[row, : len(prompt_P)] = prompt_P
        self.where_BT[self.ids_BT != special.mask_id] = GIVEN
        self.given_BT = self.where_BT == GIVEN
        position_T = torch.arange(longest)
        open_BT = ~self.given_BT & (position_T < self.end_B[:, None])
        self.first_B = open_BT.int().argmax(1)
        self.last_B = torch.where(open_BT, position_T, -1).max(1).values
        self.written_B = torch.zeros(n_rows, dtype=torch.int64)
        self.groups_B = torch.zeros(n_rows, dtype=torch.int64)
        self.stopped_B = torch.zeros(n_rows, dtype=torch.bool)
        self._records: list[_Record] = []

    def open_AT(self, rows_A: Tensor, start: int, end: int) -> Tensor:
        """Positions of a block that rows may still commit: masked, and not behind their end."""
        masked_AT = self.ids_BT[rows_A, start:end] == self.lm.config.mask_id
        return masked_AT & (torch.arange(start, end) < self.end_B[rows_A, None])

    def writes_on(self, rows_A: Tensor, position: int) -> Tensor:
        """Whether rows have something to write at this position or behind it."""
        return ~self.stopped_B[rows_A] & (self.last_B[rows_A] >= position)

    def end_at(self, row: int, position: int) -> None:
        """Nobody wants more of this row."""
        self.stopped_B[row] = True
        self.end_B[row] = min(position, int(self.end_B[row]))

    def text(self, row: int, position: int) -> list[int]:
        """What a row wrote before this position, from its first generated token on."""
        end = min(position, int(self.end_B[row]))
        ids: list[int] = self.ids_BT[row, int(self.first_B[row]) : end].tolist()
        return ids

    def without_prompt(self, rows_A: Tensor, start: int, end: int) -> Tensor:
        """The tokens of these rows with all that was given masked."""
        return self.ids_BT[rows_A, start:end].masked_fill(
            self.given_BT[rows_A, start:end], self.lm.config.mask_id
        )

    def logits(
        self, state_ND: Tensor, bare_ND: Tensor, rows_N: Tensor, position_N: Tensor
    ) -> Tensor:
        """Logits that choose tokens: guided, suppressed, and never a token that is no text."""
        logits_NV = self.lm.logits(state_ND).float()
        if self.config.guidance:
            bare_NV = self.lm.logits(bare_ND).float()
            logits_NV = bare_NV + (self.config.guidance + 1) * (logits_NV - bare_NV)
        if self.steering is not None:
            suppression_NV = self.steering.suppression(rows_N, self.written_B[rows_N])
            logits_NV = logits_NV if suppression_NV is None else logits_NV - suppression_NV
        logits_NV = logits_NV.index_fill(-1, self.never_ids, float("-inf"))
        inside_N = position_N < self.n_given_B[rows_N]  # a blank: the text goes on behind it
        if inside_N.any():
            stops_V = torch.zeros(logits_NV.shape[1], dtype=torch.bool)
            stops_V[self.stop_ids] = True
            logits_NV = logits_NV.masked_fill(inside_N[:, None] & stops_V, float("-inf"))
        return logits_NV

    def injection(self, rows_A: Tensor, start: int, end: int) -> Injection | None:
        """What steering adds to the states of these positions."""
        if self.steering is None:
            return None
        ahead = int(self.lm.config.backbone.attention == "causal")  # states read the next token off
        where_AT = self.where_BT[rows_A, start + ahead : end + ahead]
        return self.steering.injection(rows_A, where_AT, self.written_B[rows_A])

    def commit(self, now: Commits) -> None:
        """Draw the tokens of one step, put them in their places, and record how they came there."""
        rows_R = now.rows_R
        used_BT = self.ids_BT.masked_fill(self.given_BT, self.lm.config.mask_id)
        logits_RV = penalised(
            now.logits_RV, used_BT[rows_R], self.spared_ids, self.config.repetition_penalty
        )
        token_R = draw(logits_RV, self.config, self._uniforms(rows_R))
        self._record(now, token_R)
        self.ids_BT[rows_R, now.position_R] = token_R
        self.where_BT[rows_R, now.position_R] = self.written_B[rows_R]
        self.written_B.index_add_(0, rows_R, torch.ones_like(rows_R))
        self.groups_B[rows_R] += 1
        stops_R = torch.isin(token_R, self.stop_ids)
        self.stopped_B[rows_R[stops_R]] = True
        self.end_B.scatter_reduce_(0, rows_R[stops_R], now.position_R[stops_R] + 1, "amin")

    def traces(self) -> list[Trace]:
        """What each row wrote, and how."""
        if not self._records:
            raise ValueError("no row has anything to generate; ask for new tokens, or give masks")
        columns = zip(*(vars(record).values() for record in self._records), strict=True)
        whole = _Record(*(torch.cat(column) for column in columns))
        return [self._trace(row, whole) for row in range(len(self.ids_BT))]

    def _uniforms(self, rows_R: Tensor) -> Tensor:
        """One number for each commit, by its row's name, seed and own count of steps."""
        if self.config.temperature == 0.0:
            return torch.zeros(len(rows_R))
        rows, counts = torch.unique_consecutive(rows_R, return_counts=True)
        drawn = [
            uniforms(
                self.names_B[row][None], count, seed=self.seeds[row],
                step=int(self.groups_B[row]), purpose=Purpose.TOKEN,
            )[0]
            for row, count in zip(rows.tolist(), counts.tolist(), strict=True)
        ]  # fmt: skip
        return torch.cat(drawn)

    def _record(self, now: Commits, token_R: Tensor) -> None:
        row_RD = self.lm.head_VD[token_R]
        logit_R = (self.lm.composed(now.state_RD) * row_RD).sum(-1)
        if self.config.guidance:
            bare_R = (self.lm.composed(now.bare_RD) * row_RD).sum(-1)
            logit_R = bare_R + (self.config.guidance + 1) * (logit_R - bare_R)
        if not torch.isfinite(logit_R).all():
            raise ValueError(
                f"the logit of a token at position {int(now.position_R[0])} is not finite: the "
                f"weights are damaged; take another checkpoint"
            )
        self._records.append(
            _Record(
                now.rows_R, self.groups_B[now.rows_R], now.position_R, token_R, logit_R,
                certainty(now.logits_RV), now.state_RD, now.seen_R, now.readout_R, now.bare_RD,
            )
        )  # fmt: skip

    def _trace(self, row: int, whole: _Record) -> Trace:
        mine_N = whole.rows_N == row
        state_ND = whole.state_ND[mine_N]
        known, unknown = self._concepts(state_ND)
        length = int(self.length_B[row])
        return Trace(
            ids_T=self.ids_BT[row, :length].clone(),
            n_prompt=int(self.first_B[row]),
            end=int(self.end_B[row]),
            stopped=bool(torch.isin(whole.token_N[mine_N], self.stop_ids).any()),
            mask_id=self.lm.config.mask_id,
            group_N=whole.group_N[mine_N],
            position_N=whole.position_N[mine_N],
            token_N=whole.token_N[mine_N],
            logit_N=whole.logit_N[mine_N],
            confidence_N=whole.confidence_N[mine_N],
            state_ND=state_ND,
            seen_N=whole.seen_N[mine_N],
            readout_N=whole.readout_N[mine_N],
            given_T=self.given_BT[row, :length].clone(),
            steering=None if self.steering is None else self.steering.of(row),
            guidance=self.config.guidance,
            bare_ND=whole.bare_ND[mine_N],
            known=known,
            unknown=unknown,
        )

    def _concepts(self, state_ND: Tensor) -> tuple[TopConcepts, TopConcepts]:
        k = self.config.top_concepts
        if k == 0:
            none = TopConcepts(
                torch.zeros(len(state_ND), 0, dtype=torch.int64), torch.zeros(len(state_ND), 0)
            )
            return none, none
        found = [head.top(state_ND) for head in (self.lm.concepts.known, self.lm.concepts.unknown)]
        known, unknown = (TopConcepts(top.ids[:, :k], top.activations[:, :k]) for top in found)
        return known, unknown


def _whole_blocks(lm: LanguageModel, end_B: Tensor) -> Tensor:
    """Positions that rows of these ends need: the last block is whole, as in training."""
    backbone = lm.config.backbone
    if backbone.attention == "causal":
        return end_B
    whole_B = (end_B + backbone.block - 1) // backbone.block * backbone.block
    return whole_B.clamp_max(backbone.max_length)
