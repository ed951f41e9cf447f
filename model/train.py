"""The training loop (paper §5.4, appendix G): batches in, a trained network and its curve out.

    engine = PlainEngine(lm, config)                 # model.engine; or ZeroEngine of model.zero
    history = fit(engine, config, batch_at, held_out, events)
    lm = engine.finished()

`batch_at(step)` gives this rank's share of the global batch of a step. Noise, forcing and dropout
are drawn by (seed, step, sample id), so the same step on any number of ranks is the same step.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from model import accounting, forcing, schedules
from model.diffusion import Batch, fixed, question
from model.engine import Engine
from model.events import Event, Events, ignore
from model.forcing import Chances
from model.objective import Example, Term, counts, weights
from model.train_config import TrainingConfig

BatchAt = Callable[[int], Batch]

VALIDATION_RATE = 0.5
VALIDATION_SEED = 0


class DivergedError(RuntimeError):
    """Too many steps in a row whose loss or gradient was not finite."""


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
    """Steps left out because their gradient was not finite."""

    @property
    def last(self) -> Row:
        return self.rows[-1]


@dataclass
class _Interval:
    """Sums and counts since the last row of the curve."""

    sums_S: Tensor = field(default_factory=lambda: torch.zeros(len(Term)))
    counts_S: Tensor = field(default_factory=lambda: torch.zeros(len(Term)))
    started: float = field(default_factory=time.perf_counter)
    n_steps: int = 0
    gradient_norm: float = 0.0

    def add(self, sums_S: Tensor, counts_S: Tensor, gradient_norm: float) -> None:
        self.sums_S = self.sums_S + sums_S
        self.counts_S = self.counts_S + counts_S
        self.gradient_norm = gradient_norm
        self.n_steps += 1


def fit(
    engine: Engine,
    config: TrainingConfig,
    batch_at: BatchAt,
    held_out: Sequence[Batch],
    events: Events = ignore,
) -> History:
    """Train. `held_out` are whole batches, the same on every rank; each takes its share."""
    validate_after = {
        round(config.n_steps * (i + 1) / config.validations) for i in range(config.validations)
    }
    rows: list[Row] = []
    interval = _Interval()
    n_skipped = in_a_row = 0
    for step in range(config.n_steps):
        lr = schedules.learning_rate(config.optim, step, config.n_steps)
        sums_S, counts_S, gradient_norm = _step(engine, config, batch_at(step), step, lr)
        if math.isfinite(gradient_norm) and bool(sums_S.isfinite().all()):
            interval.add(sums_S, counts_S, gradient_norm)
            in_a_row = 0
        else:
            n_skipped, in_a_row = n_skipped + 1, in_a_row + 1
            _stop_if_diverged(config, step, in_a_row, lr)
        done = step + 1
        if done in validate_after or done % config.log_every == 0 or done == config.n_steps:
            if not interval.n_steps:
                continue
            valid_S = validate(engine, config, held_out) if done in validate_after else None
            rows.append(_row(engine, config, done, lr, interval, valid_S))
            if engine.rank == 0:
                events(_event(rows[-1], config, interval))
            interval = _Interval()
    return History(tuple(rows), n_skipped)


@torch.no_grad()
def validate(engine: Engine, config: TrainingConfig, held_out: Sequence[Batch]) -> Tensor:
    """Means of the terms on held-out batches, as they stand: nothing forced, nothing dropped."""
    sums_S, counts_S = torch.zeros(len(Term)), torch.zeros(len(Term))
    for batch in held_out:
        share = batch.part(slice(engine.rank, None, engine.world))
        if not len(share):
            continue
        example = Example(
            batch=share,
            asked=question(share, fixed(VALIDATION_RATE), VALIDATION_SEED, 0, engine.lm.config),
            forcing=forcing.draw(share, Chances(), seed=VALIDATION_SEED, step=0),
            sparse=True,
        )
        sums_S += engine.sums(example)
        counts_S += counts(example, engine.lm, config.objective)
    return _means(engine.total(sums_S), engine.total(counts_S))


def example_at(batch: Batch, engine: Engine, config: TrainingConfig, step: int) -> Example:
    """A micro-batch as the network meets it at this step: noisy, partly forced and dropped."""
    progress = step / config.n_steps
    objective, seed = config.objective, config.seed
    chances = Chances(
        known=schedules.alpha(objective.alpha_known, progress),
        unknown=schedules.alpha(objective.alpha_unknown, progress),
        known_dropped=objective.known_dropout,
        residual_dropped=objective.residual_dropout,
    )
    asked = question(
        batch,
        schedules.noise(config.noise, progress),
        seed,
        step,
        engine.lm.config,
        clean_prefix=config.noise.clean_prefix,
    )
    drawn = forcing.draw(batch, chances, seed=seed, step=step)
    return Example(batch, asked, drawn, sparse=progress >= objective.sparse_from)


def _step(
    engine: Engine, config: TrainingConfig, batch: Batch, step: int, lr: float
) -> tuple[Tensor, Tensor, float]:
    """One optimiser step. Sums and counts over all ranks, and the gradient's norm."""
    examples = [
        example_at(batch.part(slice(part, None, config.micro_batches)), engine, config, step)
        for part in range(config.micro_batches)
    ]
    mine_S = torch.stack([counts(one, engine.lm, config.objective) for one in examples]).sum(0)
    counts_S = engine.total(mine_S)
    weights_S = weights(config.objective, counts_S)
    sums_S = torch.zeros(len(Term))
    for one in examples:
        found_S = engine.sums(one)
        engine.backward((found_S * weights_S).sum())
        sums_S += found_S.detach()
    return engine.total(sums_S), counts_S, engine.step(lr)


def _stop_if_diverged(config: TrainingConfig, step: int, in_a_row: int, lr: float) -> None:
    if in_a_row > config.patience_non_finite:
        raise DivergedError(
            f"loss or gradient was not finite in {in_a_row} steps in a row, the last one step "
            f"{step} at learning rate {lr:.2g} (limit {config.patience_non_finite}); lower "
            f"optim.peak_lr or lengthen optim.warmup, or compute in float32"
        )


def _row(
    engine: Engine,
    config: TrainingConfig,
    done: int,
    lr: float,
    interval: _Interval,
    valid_S: Tensor | None,
) -> Row:
    tokens = done * config.tokens_per_step
    means_S = _means(interval.sums_S, interval.counts_S)
    per_token = accounting.training_flops_per_token(engine.lm.config, config.length)
    nothing = engine.lm.bottleneck is None
    return Row(
        step=done,
        tokens=tokens,
        flops=per_token * tokens,
        lr=lr,
        nll_nats=float(means_S[Term.NLL]),
        valid_nll_nats=None if valid_S is None else float(valid_S[Term.NLL]),
        concept_loss=None if nothing else float(means_S[Term.CONCEPT]),
        independence_loss=None if nothing else float(means_S[Term.INDEPENDENCE]),
        reconstruction_loss=None if nothing else float(means_S[Term.RECONSTRUCTION]),
        concept_contribution=(
            None if nothing or valid_S is None else float(valid_S[Term.CONTRIBUTION])
        ),
    )


def _event(row: Row, config: TrainingConfig, interval: _Interval) -> Event:
    seconds = time.perf_counter() - interval.started
    metrics = {
        "tokens": float(row.tokens),
        "flops": row.flops,
        "learning_rate": row.lr,
        "nll_nats": row.nll_nats,
        "gradient_norm": interval.gradient_norm,
        "tokens_per_second": interval.n_steps * config.tokens_per_step / seconds,
    }
    for name in (
        "valid_nll_nats",
        "concept_loss",
        "independence_loss",
        "reconstruction_loss",
        "concept_contribution",
    ):
        value = getattr(row, name)
        if value is not None:
            metrics[name] = value
    return Event(step=row.step, total_steps=config.n_steps, metrics=metrics)


def _means(sums_S: Tensor, counts_S: Tensor) -> Tensor:
    return torch.where(counts_S > 0, sums_S / counts_S.clamp(min=1e-9), 0.0)
