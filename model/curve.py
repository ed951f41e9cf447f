"""The training curve: its rows, and the sums between two of them that make one (appendix G).

Shape suffixes: S term of the objective
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from model import accounting
from model.language_model import LanguageModel
from model.terms import Term
from model.train_config import TrainingConfig


@dataclass(frozen=True)
class Row:
    """One point of the training curve. None where a value was not measured or does not exist."""

    step: int
    """Steps done."""

    tokens: int
    flops: float
    lr: float
    nll_nats: float
    """Training loss per token asked for, over the steps since the row before."""

    valid_nll_nats: float | None
    """Held-out loss per masked token, at rate 0.5 in the diffusion families."""

    concept_loss: float | None
    independence_loss: float | None
    reconstruction_loss: float | None
    concept_contribution: float | None
    """On the held-out tokens, with top-k heads."""


@dataclass(frozen=True)
class History:
    """What a training run leaves behind besides its weights."""

    rows: tuple[Row, ...]
    n_skipped: int
    """Steps left out because their loss or gradient was not finite."""

    @property
    def last(self) -> Row:
        return self.rows[-1]


@dataclass
class Interval:
    """Sums and counts of the steps since some moment, the skipped ones left out."""

    sums_S: Tensor = field(default_factory=lambda: torch.zeros(len(Term)))
    counts_S: Tensor = field(default_factory=lambda: torch.zeros(len(Term)))
    n_steps: int = 0
    gradient_norm: float = 0.0
    """Of the last step."""

    def add(self, sums_S: Tensor, counts_S: Tensor, gradient_norm: float) -> None:
        self.sums_S = self.sums_S + sums_S
        self.counts_S = self.counts_S + counts_S
        self.gradient_norm = gradient_norm
        self.n_steps += 1

    @property
    def means_S(self) -> Tensor:
        return means(self.sums_S, self.counts_S)


def row(
    lm: LanguageModel,
    config: TrainingConfig,
    *,
    step: int,
    lr: float,
    interval: Interval,
    valid_S: Tensor | None,
) -> Row:
    """The point of the curve after `step` steps."""
    tokens = step * config.tokens_per_step
    means_S = interval.means_S

    def trained(term: Term) -> float | None:
        return float(means_S[term]) if interval.counts_S[term] > 0 else None

    return Row(
        step=step,
        tokens=tokens,
        flops=accounting.training_flops_per_token(lm.config, config.length) * tokens,
        lr=lr,
        nll_nats=float(means_S[Term.NLL]),
        valid_nll_nats=None if valid_S is None else float(valid_S[Term.NLL]),
        concept_loss=trained(Term.CONCEPT),
        independence_loss=trained(Term.INDEPENDENCE),
        reconstruction_loss=trained(Term.RECONSTRUCTION),
        concept_contribution=(
            None if lm.bottleneck is None or valid_S is None else float(valid_S[Term.CONTRIBUTION])
        ),
    )


def means(sums_S: Tensor, counts_S: Tensor) -> Tensor:
    """Sums over their denominators; 0 where nothing was counted."""
    return torch.where(counts_S > 0, sums_S / counts_S.clamp(min=1e-9), 0.0)
