"""What a network is asked: masked tokens of noisy blocks, or the next token (paper §5.2, eq. 2).

    cdlm   each block draws a rate, each token of it becomes <|mask|> with that probability, and is
           asked for at its own position
    ar     nothing is hidden; every position is asked for the token after it

BOS and padding are never masked and never asked for. In a conversation, neither is the prompt: the
answer alone is noisy, and what fills its last block is hidden with it but asked for only in part.

Shape suffixes used in this file:
    B batch   T position   C chunk of the batch   M place for a concept   N block of a sequence
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from model.config import LanguageModelConfig
from model.draws import Purpose, uniforms

Rates = Callable[[Tensor], Tensor]
"""Noise rates in (0, 1], one for each uniform number in [0, 1)."""


@dataclass(frozen=True)
class Answers:
    """Where sequences are answers to prompts: all else is read whole and never asked for."""

    hideable_BT: Tensor
    """bool: the answer and what fills its last block."""

    askable_BT: Tensor
    """bool: of these, what the network shall learn to write."""


@dataclass(frozen=True)
class Batch:
    """Sequences of tokens and the concepts of their chunks."""

    ids_BT: Tensor
    """int64"""

    chunk_BT: Tensor
    """int64: row of the chunk tables below; −1 where a token is pooled into no chunk."""

    concepts_CM: Tensor
    """int64: concept ids of each chunk, −1 in unused places."""

    labelled_C: Tensor
    """bool: whether anybody labelled the chunk; an unlabelled one is not one without concepts."""

    sample_ids_B: Tensor
    """int64: names of the sequences; their noise depends on nothing else but seed and step."""

    answers: Answers | None = None
    """None: plain text, in which everything is asked for."""

    def __len__(self) -> int:
        return len(self.ids_BT)

    def part(self, rows: slice) -> "Batch":
        """Some of the sequences, with the chunk tables of all."""
        answers = self.answers
        if answers is not None:
            answers = Answers(answers.hideable_BT[rows], answers.askable_BT[rows])
        return replace(
            self,
            answers=answers,
            ids_BT=self.ids_BT[rows],
            chunk_BT=self.chunk_BT[rows],
            sample_ids_B=self.sample_ids_B[rows],
        )

    def hideable(self, config: LanguageModelConfig) -> Tensor:
        """Positions that may be masked (B, T)."""
        plain_BT = (self.ids_BT != config.bos_id) & (self.ids_BT != config.pad_id)
        return plain_BT if self.answers is None else plain_BT & self.answers.hideable_BT

    def askable(self, config: LanguageModelConfig) -> Tensor:
        """Positions whose token may be asked for (B, T)."""
        plain_BT = self.hideable(config)
        return plain_BT if self.answers is None else plain_BT & self.answers.askable_BT


@dataclass(frozen=True)
class Corrupted:
    """What the network sees, and where which token is asked for."""

    noisy_BT: Tensor
    masked_BT: Tensor
    """bool: positions whose state must name the target (in the AR families: every position that
    has a next token)."""

    target_BT: Tensor
    rate_BT: Tensor
    """float32: probability with which the position was masked."""


def fixed(rate: float) -> Rates:
    """The same rate everywhere."""
    return lambda uniform: torch.full_like(uniform, rate)


def uniform_between(low: float, high: float) -> Rates:
    """Rates spread evenly over [low, high)."""
    return lambda uniform: low + (high - low) * uniform


def corrupt(
    batch: Batch,
    rates: Rates,
    seed: int,
    step: int,
    config: LanguageModelConfig,
    *,
    per: Literal["block", "sequence"] = "block",
    clean_prefix: float = 0.0,
) -> Corrupted:
    """Mask tokens. Each sequence that can have a masked token has at least one.

    `clean_prefix` is the share of sequences whose first blocks, a random number of them, stay
    whole and are not asked for: generation sees finished blocks, plain training never does.
    """
    length = batch.ids_BT.shape[1]
    block = config.backbone.block
    n_blocks = -(-length // block)
    draw = _Draws(batch.sample_ids_B, seed, step)
    rate_BN = rates(draw(n_blocks if per == "block" else 1, Purpose.RATE)).expand(-1, n_blocks)
    rate_BT = rate_BN.repeat_interleave(block, dim=1)[:, :length]

    hideable_BT, askable_BT = batch.hideable(config), batch.askable(config)
    if clean_prefix > 0 and n_blocks > 1:
        first_BT = torch.arange(length) // block < _whole_blocks(draw, clean_prefix, n_blocks)
        hideable_BT, askable_BT = hideable_BT & ~first_BT, askable_BT & ~first_BT
        rate_BT = rate_BT.masked_fill(first_BT, 0.0)

    score_BT = draw(length, Purpose.MASK)
    hidden_BT = (score_BT < rate_BT) & hideable_BT
    asks_none_B1 = ~(hidden_BT & askable_BT).any(dim=1, keepdim=True)
    hidden_BT |= _nearest(score_BT, askable_BT) & asks_none_B1
    noisy_BT = batch.ids_BT.masked_fill(hidden_BT, config.mask_id)
    return Corrupted(noisy_BT, hidden_BT & askable_BT, batch.ids_BT, rate_BT)


def next_tokens(batch: Batch, config: LanguageModelConfig) -> Corrupted:
    """The question of the AR families: nothing hidden, targets shifted by one."""
    ids_BT = batch.ids_BT
    target_BT = torch.cat([ids_BT[:, 1:], torch.full_like(ids_BT[:, :1], config.pad_id)], dim=1)
    asked_BT = batch.askable(config).roll(-1, dims=1)
    asked_BT[:, -1] = False
    return Corrupted(ids_BT, asked_BT, target_BT, torch.ones(ids_BT.shape))


def question(
    batch: Batch,
    rates: Rates,
    seed: int,
    step: int,
    config: LanguageModelConfig,
    *,
    clean_prefix: float = 0.0,
) -> Corrupted:
    """The question that the network's family is trained on."""
    if config.backbone.attention == "causal":
        return next_tokens(batch, config)
    return corrupt(batch, rates, seed, step, config, clean_prefix=clean_prefix)


@dataclass(frozen=True)
class _Draws:
    sample_ids_B: Tensor
    seed: int
    step: int

    def __call__(self, n: int, purpose: Purpose) -> Tensor:
        return uniforms(self.sample_ids_B, n, seed=self.seed, step=self.step, purpose=purpose)


def _whole_blocks(draw: _Draws, share: float, n_blocks: int) -> Tensor:
    """Number of first blocks left whole in each sequence, (B, 1): never all of them."""
    uniform_B2 = draw(2, Purpose.PREFIX)
    count_B1 = 1 + (uniform_B2[:, 1:] * (n_blocks - 1)).long()
    return torch.where(uniform_B2[:, :1] < share, count_B1, 0)


def _nearest(score_BT: Tensor, allowed_BT: Tensor) -> Tensor:
    """The allowed position with the smallest score in each sequence, as a mask."""
    best_B1 = score_BT.masked_fill(~allowed_BT, 2.0).argmin(dim=1, keepdim=True)
    chosen_BT = torch.zeros_like(allowed_BT).scatter_(1, best_B1, value=1)
    return chosen_BT & allowed_BT
