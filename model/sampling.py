"""Generation: confidence unmasking block by block, over an exact cache (paper §5).

    cdlm   blocks lie on the absolute grid, the prompt's partial block first; each step commits the
           most certain masked position, or all that are certain enough; a finished block enters
           the cache and never changes
    ar     one token after the other, through the same interface

Only the open block runs through the network, and the head only at its masked positions. While the
residual is kept, the recomposed state is the hidden state: plain generation asks no concept head.

Prompts may have any lengths. Rows at the same place of the grid form a cohort, which runs as one
batch; the cohort that is furthest behind writes first and joins those it comes up with. No row is
padded, so that none depends on the others.

A prompt may hold masks: they are filled where they stand, and see the text behind them as far as
their own block reaches, as the network was trained.

Shape suffixes used in this file:
    B row of the batch   A rows of a cohort   T position   D width   N masked position of any row
    M masked position of one row
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model.attention import KeysValues
from model.language_model import LanguageModel
from model.page import Commits, Page
from model.sampling_config import SamplingConfig
from model.steering import Steering
from model.trace import Trace
from model.transformer import NO_PAST, Injection, Past
from model.unmasking import certainty, chosen

Heard = Callable[[int, list[int]], bool]
"""Takes a row and its text so far, whenever a block of it is finished; answers whether the row is
still wanted."""


def deaf(row: int, ids: list[int]) -> bool:
    """Nobody listens, and everything is wanted."""
    return True


@torch.no_grad()
def generate(
    lm: LanguageModel,
    prompts: Sequence[Tensor] | Tensor,
    config: SamplingConfig,
    *,
    stop_ids: Sequence[int] = (),
    sample_ids: Sequence[int] | None = None,
    seeds: Sequence[int] | None = None,
    steering: Steering | None = None,
    heard: Heard = deaf,
) -> list[Trace]:
    """Continue prompts, int64 (P) each. A text ends at EOS or a stop id, each row by itself.

    `sample_ids` name the rows (0, 1, 2 … unless given), `seeds` are of each row (the config's
    unless given): with a temperature, a row's draws depend on its name, its seed and its own step,
    not on who else is in the batch. Raises ValueError for a prompt that is empty or too long, where
    nothing is to be generated, and for weights that are not finite.
    """
    rows = list(prompts)
    for prompt_P in rows:
        _check(lm, prompt_P, config)
    names = range(len(rows)) if sample_ids is None else sample_ids
    of_rows = [config.seed] * len(rows) if seeds is None else seeds
    page = Page(lm, rows, config, stop_ids, names, of_rows, steering)
    causal = lm.config.backbone.attention == "causal"
    write = _write_token if causal else _write_block
    waiting = _cohorts(page, _start_of(page))
    while waiting:
        cohort = _furthest_behind(waiting)
        on = write(page, cohort)
        position = on.start + 1 if causal else on.start
        if not causal or position % lm.config.backbone.block == 0:
            _tell(page, cohort.rows_A, position, heard)
        wanted_A = page.writes_on(on.rows_A, position)
        if wanted_A.any():
            waiting.append(on.of(wanted_A))
    return page.traces()


@dataclass(frozen=True)
class _Cohort:
    """Rows whose first `start` positions are finished and in the cache."""

    start: int
    rows_A: Tensor
    past: Past
    bare: Past
    """Of the same rows without their prompts; empty where nothing guides."""

    def of(self, wanted_A: Tensor) -> "_Cohort":
        if wanted_A.all():
            return self
        return _Cohort(
            self.start, self.rows_A[wanted_A], _rows(self.past, wanted_A),
            _rows(self.bare, wanted_A),
        )  # fmt: skip


def _start_of(page: Page) -> Tensor:
    """Where each row begins (B): at its first open block, or at the token it is read off."""
    backbone = page.lm.config.backbone
    if backbone.attention == "causal":
        return page.first_B - 1
    return page.first_B // backbone.block * backbone.block


def _cohorts(page: Page, start_B: Tensor) -> list[_Cohort]:
    """Rows that begin at the same place, with what stands before it read."""
    found = []
    for start in sorted(set(start_B.tolist())):
        rows_A = (start_B == start).nonzero().squeeze(-1)
        found.append(_extended(page, _Cohort(0, rows_A, NO_PAST, NO_PAST), start))
    return found


def _extended(page: Page, cohort: _Cohort, end: int) -> _Cohort:
    """The cohort with its finished positions up to `end` in the cache."""
    start, rows_A = cohort.start, cohort.rows_A
    if start == end:
        return cohort
    injection = page.injection(rows_A, start, end)
    past = page.lm.extend(cohort.past, page.ids_BT[rows_A, start:end], injection)
    bare = cohort.bare
    if page.config.guidance:
        bare = page.lm.extend(bare, page.without_prompt(rows_A, start, end), injection)
    return _Cohort(end, rows_A, past, bare)


def _furthest_behind(waiting: list[_Cohort]) -> _Cohort:
    """Take the cohort with the least start out of the list, and all that start there with it."""
    start = min(cohort.start for cohort in waiting)
    same = [cohort for cohort in waiting if cohort.start == start]
    waiting[:] = [cohort for cohort in waiting if cohort.start != start]
    if len(same) == 1:
        return same[0]
    return _Cohort(
        start, torch.cat([cohort.rows_A for cohort in same]),
        _joined([cohort.past for cohort in same]), _joined([cohort.bare for cohort in same]),
    )  # fmt: skip


def _write_block(page: Page, cohort: _Cohort) -> _Cohort:
    """Fill the open block of every row; then it is finished."""
    start, rows_A = cohort.start, cohort.rows_A
    end = min(start + page.lm.config.backbone.block, page.lm.config.backbone.max_length)
    while (open_AT := page.open_AT(rows_A, start, end)).any():
        writing_A = open_AT.any(dim=1)
        _commit(page, cohort.of(writing_A), open_AT[writing_A])
    on_A = page.writes_on(rows_A, end)
    if not on_A.any():
        return _Cohort(end, rows_A, cohort.past, cohort.bare)
    return _extended(page, cohort.of(on_A), end)


def _commit(page: Page, cohort: _Cohort, open_AT: Tensor) -> None:
    """One step: every row commits the most certain position it has open, or several."""
    start, rows_A, end = cohort.start, cohort.rows_A, cohort.start + open_AT.shape[1]
    injection = page.injection(rows_A, start, end)
    state_ND = _read(page.lm, page.ids_BT[rows_A, start:end], open_AT, cohort.past, injection)
    bare_ND = state_ND[:, :0]
    if page.config.guidance:
        bare_ids_AT = page.without_prompt(rows_A, start, end)
        bare_ND = _read(page.lm, bare_ids_AT, open_AT, cohort.bare, injection)
    row_N, column_N = open_AT.nonzero(as_tuple=True)
    position_N = start + column_N
    logits_NV = page.logits(state_ND, bare_ND, rows_A[row_N], position_N)
    now_N = chosen(certainty(logits_NV), open_AT, page.config.threshold)
    position_R = position_N[now_N]
    page.commit(
        Commits(
            rows_A[row_N[now_N]], position_R, position_R, torch.full_like(position_R, end),
            state_ND[now_N], bare_ND[now_N], logits_NV[now_N],
        )
    )  # fmt: skip


def _read(
    lm: LanguageModel, ids_AT: Tensor, open_AT: Tensor, past: Past, injection: Injection | None
) -> Tensor:
    """States of the open positions: the last layer is asked for no more than the longest row."""
    n_open_A1 = open_AT.sum(dim=1, keepdim=True)
    open_first_AT = open_AT.int().argsort(dim=1, descending=True, stable=True)
    readout_AM = open_first_AT[:, : int(n_open_A1.max())]
    state_AMD = lm.backbone.read(lm.embedding(ids_AT), readout_AM, injection, past)
    state_ND: Tensor = state_AMD[torch.arange(readout_AM.shape[1]) < n_open_A1]
    return state_ND


def _write_token(page: Page, cohort: _Cohort) -> _Cohort:
    """Write the token behind the last one that every row has."""
    at, rows_A = cohort.start, cohort.rows_A
    injection = page.injection(rows_A, at, at + 1)
    embedded_A1D = page.lm.embedding(page.ids_BT[rows_A, at : at + 1])
    hidden_A1D, past = page.lm.backbone(embedded_A1D, cohort.past, injection)
    state_AD, position_A = hidden_A1D[:, 0], torch.full((len(rows_A),), at + 1)
    nothing_AD = state_AD[:, :0]
    logits_AV = page.logits(state_AD, nothing_AD, rows_A, position_A)
    page.commit(
        Commits(
            rows_A, position_A, position_A - 1, position_A, state_AD, nothing_AD, logits_AV
        )
    )  # fmt: skip
    return _Cohort(at + 1, rows_A, past, NO_PAST)


def _tell(page: Page, rows_A: Tensor, position: int, heard: Heard) -> None:
    for row in rows_A.tolist():
        if not heard(row, page.text(row, position)):
            page.end_at(row, position)


def _rows(past: Past, wanted_A: Tensor) -> Past:
    return Past(
        tuple(KeysValues(at.keys_BGPC[wanted_A], at.values_BGPC[wanted_A]) for at in past.layers)
    )


def _joined(pasts: Sequence[Past]) -> Past:
    """Pasts of one length, as one batch."""
    layers = zip(*(past.layers for past in pasts), strict=True)
    return Past(
        tuple(
            KeysValues(
                torch.cat([at.keys_BGPC for at in same]), torch.cat([at.values_BGPC for at in same])
            )
            for same in layers
        )
    )


def _check(lm: LanguageModel, prompt_P: Tensor, config: SamplingConfig) -> None:
    if prompt_P.ndim != 1 or len(prompt_P) < 1:
        raise ValueError(
            f"a prompt has shape {tuple(prompt_P.shape)}; give a row of at least one token, "
            f"<|bos|> where there is no text"
        )
    longest = lm.config.backbone.max_length
    if len(prompt_P) + config.n_new > longest:
        raise ValueError(
            f"{len(prompt_P)} prompt tokens and {config.n_new} new ones are more than "
            f"max_length {longest}; shorten the prompt or ask for fewer new tokens"
        )
    blank = bool((prompt_P == lm.config.mask_id).any())
    if config.n_new == 0 and not blank:
        raise ValueError(
            "0 new tokens behind a prompt without a <|mask|> to fill: nothing would be generated; "
            "ask for at least 1"
        )
    if lm.config.backbone.attention == "causal" and (blank or config.guidance):
        asked = "a <|mask|> to fill" if blank else f"guidance {config.guidance}"
        raise ValueError(
            f"{asked}, but a network of the family {lm.config.family} reads from left to right "
            f"and knows no masks; use one of the families cdlm or cdlm_concept"
        )
