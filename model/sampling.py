"""Generation: confidence unmasking block by block, over an exact cache (paper §5).

    cdlm   blocks lie on the absolute grid, the prompt's partial block first; each step commits the
           most certain masked position; a finished block enters the cache and never changes
    ar     one token after the other, through the same interface

Only the open block runs through the network, and the head only at its masked positions. While the
residual is kept, the recomposed state is the hidden state: plain generation asks no concept head.

Which position is next depends on the network's certainty, not on the token drawn: positions chosen
by the probability of their own draw would favour likely tokens and skew the text.

Shape suffixes used in this file:
    B row of the batch   A rows still writing   P position of the prompt   T position   D width
    V vocabulary   N masked position of any row   R rows that commit in this step
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model.attention import KeysValues
from model.draws import Purpose, uniforms
from model.language_model import LanguageModel
from model.sampling_config import SamplingConfig
from model.steering import GIVEN, MASKED, Steering
from model.trace import Trace
from model.transformer import NO_PAST, Injection, Past


@torch.no_grad()
def generate(
    lm: LanguageModel,
    prompt_BP: Tensor,
    config: SamplingConfig,
    *,
    stop_ids: Sequence[int] = (),
    sample_ids: Sequence[int] | None = None,
    steering: Steering | None = None,
) -> list[Trace]:
    """Continue prompts of one length. A text ends at EOS or a stop id, each row by itself.

    `sample_ids` name the rows (0, 1, 2 … unless given): with a temperature, a row's draws depend
    on its name, the seed and the step, not on who else is in the batch.
    """
    _check(lm, prompt_BP, config)
    names_B = torch.arange(len(prompt_BP)) if sample_ids is None else torch.tensor(sample_ids)
    page = _Page(lm, prompt_BP, config, {lm.config.eos_id, *stop_ids}, names_B, steering)
    if lm.config.backbone.attention == "causal":
        _write_left_to_right(page)
    else:
        _write_by_block(page)
    return page.traces()


def _write_by_block(page: "_Page") -> None:
    lm, block, total = page.lm, page.lm.config.backbone.block, page.n_prompt + page.config.n_new
    rows_A = torch.arange(len(page.ids_BT))
    start = page.n_prompt // block * block
    past = NO_PAST
    if start:
        past = lm.extend(past, page.ids_BT[:, :start], page.injection(rows_A, 0, start))
    while start < total:
        end = min(start + block, page.ids_BT.shape[1])
        while (open_AT := page.open_AT(rows_A, start, end)).any():
            _commit_most_certain(page, rows_A, open_AT, start, past)
        on_A = ~page.stopped_B[rows_A]
        if end >= total or not on_A.any():
            return
        rows_A, past = rows_A[on_A], _kept(past, on_A)
        injection = page.injection(rows_A, start, end)
        past = lm.extend(past, page.ids_BT[rows_A, start:end], injection)
        start = end


def _commit_most_certain(
    page: "_Page", rows_A: Tensor, open_AT: Tensor, start: int, past: Past
) -> None:
    """One step: every row that has an open position commits the most certain one."""
    window_AT = page.ids_BT[rows_A, start : start + open_AT.shape[1]]
    injection = page.injection(rows_A, start, start + open_AT.shape[1])
    hidden_ATD = page.lm.hidden(window_AT, past, injection)
    state_ND, (row_N, _) = hidden_ATD[open_AT], open_AT.nonzero(as_tuple=True)
    logits_NV = page.logits(state_ND, rows_A[row_N])

    certainty_AT = torch.full(open_AT.shape, -1.0)
    certainty_AT[open_AT] = _certainty(logits_NV)
    which_AT = torch.zeros(open_AT.shape, dtype=torch.int64)
    which_AT[open_AT] = torch.arange(len(state_ND))
    writing_R = open_AT.any(dim=1).nonzero().squeeze(-1)
    at_R = certainty_AT[writing_R].argmax(dim=1)
    chosen_R = which_AT[writing_R, at_R]
    page.commit(
        rows_A[writing_R], start + at_R, start + at_R, state_ND[chosen_R], logits_NV[chosen_R],
        seen=start + open_AT.shape[1],
    )  # fmt: skip


def _write_left_to_right(page: "_Page") -> None:
    lm, rows_A, past = page.lm, torch.arange(len(page.ids_BT)), NO_PAST
    if page.n_prompt > 1:
        before = page.n_prompt - 1
        past = lm.extend(past, page.ids_BT[:, :before], page.injection(rows_A, 0, before))
    for position in range(page.n_prompt, page.ids_BT.shape[1]):
        last_A1 = page.ids_BT[rows_A, position - 1 : position]
        injection = page.injection(rows_A, position - 1, position)
        hidden_A1D, past = lm.backbone(lm.embedding(last_A1), past, injection)
        at_A = torch.full((len(rows_A),), position)
        state_AD = hidden_A1D[:, 0]
        page.commit(rows_A, at_A, at_A - 1, state_AD, page.logits(state_AD, rows_A), seen=position)
        on_A = ~page.stopped_B[rows_A]
        if not on_A.any():
            return
        rows_A, past = rows_A[on_A], _kept(past, on_A)


class _Page:
    """Rows being written: tokens so far, where each text ends, and the record of every commit."""

    def __init__(
        self, lm: LanguageModel, prompt_BP: Tensor, config: SamplingConfig, stop_ids: set[int],
        names_B: Tensor, steering: Steering | None,
    ) -> None:  # fmt: skip
        self.lm, self.config, self.steering, self.names_B = lm, config, steering, names_B
        special, backbone = lm.config, lm.config.backbone
        self.stop_ids = torch.tensor(sorted(stop_ids))
        self.never_ids = torch.tensor([special.bos_id, special.pad_id, special.mask_id])
        self.unpenalised_ids = torch.cat(
            [self.stop_ids, self.never_ids, torch.tensor([special.end_of_chunk_id])]
        )
        n_rows, self.n_prompt = prompt_BP.shape
        total = length = self.n_prompt + config.n_new
        if backbone.attention != "causal":  # the last block is whole, as in training
            length = min(-(-total // backbone.block) * backbone.block, backbone.max_length)
        self.ids_BT = torch.full((n_rows, length), special.mask_id)
        self.ids_BT[:, : self.n_prompt] = prompt_BP
        self.where_BT = torch.full((n_rows, length), MASKED)
        self.where_BT[:, : self.n_prompt] = GIVEN
        self.written_B = torch.zeros(n_rows, dtype=torch.int64)
        self.end_B = torch.full((n_rows,), total)
        self.stopped_B = torch.zeros(n_rows, dtype=torch.bool)
        self.commits: list[_Commits] = []

    def open_AT(self, rows_A: Tensor, start: int, end: int) -> Tensor:
        """Positions of a block that rows may still commit: masked, and not behind their end."""
        masked_AT = self.ids_BT[rows_A, start:end] == self.lm.config.mask_id
        return masked_AT & (torch.arange(start, end) < self.end_B[rows_A, None])

    def logits(self, state_ND: Tensor, rows_N: Tensor) -> Tensor:
        """Logits that choose tokens: suppressed as steering asks, never a token that is no text."""
        logits_NV = self.lm.logits(state_ND)
        if self.steering is not None:
            suppression_NV = self.steering.suppression(rows_N, self.written_B[rows_N])
            logits_NV = logits_NV if suppression_NV is None else logits_NV - suppression_NV
        return logits_NV.index_fill(-1, self.never_ids, float("-inf"))

    def injection(self, rows_A: Tensor, start: int, end: int) -> Injection | None:
        """What steering adds to the states of these positions."""
        if self.steering is None:
            return None
        ahead = int(self.lm.config.backbone.attention == "causal")  # states read the next token off
        where_AT = self.where_BT[rows_A, start + ahead : end + ahead]
        return self.steering.injection(rows_A, where_AT, self.written_B[rows_A])

    def commit(
        self, rows_R: Tensor, position_R: Tensor, readout_R: Tensor, state_RD: Tensor,
        logits_RV: Tensor, *, seen: int,
    ) -> None:  # fmt: skip
        """Draw one token for each row, put it in its place, and record how it came there."""
        uniform_R = uniforms(
            self.names_B[rows_R], 1, seed=self.config.seed, step=len(self.commits),
            purpose=Purpose.TOKEN,
        )[:, 0]  # fmt: skip
        used_RT = self.ids_BT[rows_R, self.n_prompt :]
        token_R = draw(_penalised(logits_RV, used_RT, self), self.config, uniform_R)
        self.ids_BT[rows_R, position_R] = token_R
        self.where_BT[rows_R, position_R] = self.written_B[rows_R]
        self.written_B[rows_R] += 1
        stops_R = torch.isin(token_R, self.stop_ids)
        self.stopped_B[rows_R] |= stops_R
        self.end_B[rows_R] = torch.where(stops_R, position_R + 1, self.end_B[rows_R])
        logit_R = (self.lm.composed(state_RD) * self.lm.head_VD[token_R]).sum(-1)
        seen_R = torch.full_like(position_R, seen)
        self.commits.append(
            _Commits(
                rows_R, position_R, token_R, logit_R, _certainty(logits_RV), state_RD, seen_R,
                readout_R,
            )
        )  # fmt: skip

    def traces(self) -> list[Trace]:
        """What each row wrote, and how."""
        whole = _Commits.joined(self.commits)
        return [self._trace(row, whole.of(row)) for row in range(len(self.ids_BT))]

    def _trace(self, row: int, mine: "_Commits") -> Trace:
        return Trace(
            ids_T=self.ids_BT[row].clone(),
            n_prompt=self.n_prompt,
            end=int(self.end_B[row]),
            stopped=bool(self.stopped_B[row]),
            mask_id=self.lm.config.mask_id,
            group_N=torch.arange(len(mine.rows_R)),
            position_N=mine.position_R,
            token_N=mine.token_R,
            logit_N=mine.logit_R,
            confidence_N=mine.certainty_R,
            state_ND=mine.state_RD,
            seen_N=mine.seen_R,
            readout_N=mine.readout_R,
        )


@dataclass(frozen=True)
class _Commits:
    """Tokens committed in one step, or in all of them."""

    rows_R: Tensor
    position_R: Tensor
    token_R: Tensor
    logit_R: Tensor
    certainty_R: Tensor
    state_RD: Tensor
    seen_R: Tensor
    readout_R: Tensor

    @classmethod
    def joined(cls, steps: Sequence["_Commits"]) -> "_Commits":
        return cls(*(torch.cat(column) for column in zip(*map(_columns, steps), strict=True)))

    def of(self, row: int) -> "_Commits":
        mine_R = self.rows_R == row
        return _Commits(*(column[mine_R] for column in _columns(self)))


def _columns(commits: _Commits) -> tuple[Tensor, ...]:
    return tuple(vars(commits).values())


def draw(logits_RV: Tensor, config: SamplingConfig, uniform_R: Tensor) -> Tensor:
    """One token a row: the likeliest at temperature 0, else from the nucleus, by the uniform."""
    if config.temperature == 0.0:
        return logits_RV.argmax(-1)
    ranked = (logits_RV.double() / config.temperature).softmax(-1).sort(-1, descending=True)
    before_RV = ranked.values.cumsum(-1) - ranked.values
    mass_RV = ranked.values.where(before_RV < config.top_p, 0.0).cumsum(-1)
    rank_R1 = (mass_RV <= uniform_R[:, None] * mass_RV[:, -1:]).sum(-1, keepdim=True)
    return ranked.indices.gather(-1, rank_R1).squeeze(-1)


def _penalised(logits_RV: Tensor, used_RT: Tensor, page: _Page) -> Tensor:
    penalty = page.config.repetition_penalty
    if penalty == 1.0:
        return logits_RV
    used_RV = torch.zeros_like(logits_RV, dtype=torch.bool).scatter_(1, used_RT, value=True)
    used_RV.index_fill_(1, page.unpenalised_ids, value=False)
    lowered_RV = torch.where(logits_RV > 0, logits_RV / penalty, logits_RV * penalty)
    return torch.where(used_RV, lowered_RV, logits_RV)


def _certainty(logits_NV: Tensor) -> Tensor:
    return (logits_NV.max(-1).values - logits_NV.logsumexp(-1)).exp()


def _kept(past: Past, on_A: Tensor) -> Past:
    if on_A.all():
        return past
    return Past(tuple(KeysValues(at.keys_BGPC[on_A], at.values_BGPC[on_A]) for at in past.layers))


def _check(lm: LanguageModel, prompt_BP: Tensor, config: SamplingConfig) -> None:
    if prompt_BP.ndim != 2 or prompt_BP.shape[0] < 1 or prompt_BP.shape[1] < 1:
        raise ValueError(
            f"prompts have shape {tuple(prompt_BP.shape)}; give rows of at least one token, "
            f"<|bos|> where there is no text"
        )
    longest = lm.config.backbone.max_length
    if prompt_BP.shape[1] + config.n_new > longest:
        raise ValueError(
            f"{prompt_BP.shape[1]} prompt tokens and {config.n_new} new ones are more than "
            f"max_length {longest}; shorten the prompt or ask for fewer new tokens"
        )
    if (prompt_BP == lm.config.mask_id).any():
        raise ValueError("a prompt holds <|mask|>, which only generation may place; remove it")
