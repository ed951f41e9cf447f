"""The training loop (paper §5.4, appendix G): batches in, a trained network and its curve out.

    engine = PlainEngine(lm, config)                 # model.engine; or ZeroEngine of model.zero
    history = fit(engine, config, batch_at, held_out, events)
    lm = engine.finished()

`batch_at(step)` gives this rank's share of the global batch of a step. Noise, forcing and dropout
are drawn by (seed, step, sample id), so the same step on any number of ranks is the same step, and
a run that goes on from a savepoint (`model.progress.Keeper`) takes the steps it would have taken.

Shape suffixes: S term of the objective
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model import forcing, schedules
from model.curve import History, row
from model.diffusion import Batch, question
from model.endings import DivergedError, StoppedError
from model.engine import Engine
from model.events import Events, ignore
from model.forcing import Chances
from model.interleaving import Lifted, aim
from model.objective import Example, counts, weights
from model.progress import Keeper, Progress, Unkept, Wishes
from model.telling import Teller
from model.terms import Term
from model.train_config import TrainingConfig
from model.validation import validate

BatchAt = Callable[[int], Batch]


def fit(
    engine: Engine,
    config: TrainingConfig,
    batch_at: BatchAt,
    held_out: Sequence[Batch],
    events: Events = ignore,
    keeper: Keeper | None = None,
    lifted: Lifted | None = None,
) -> History:
    """Train. `held_out` are whole batches, the same on every rank; each takes its share.

    Without a keeper nothing is kept; steering steps need the lifted words. Raises DivergedError,
    and StoppedError where a rank was asked to stop before the last step.
    """
    if config.interleaving is not None and lifted is None:
        raise ValueError(
            "training.interleaving asks for steering steps, which aim at the lifted words of the "
            "concepts; give them, or set it to null"
        )
    keeper = keeper or Unkept()
    now = keeper.resumed()
    teller = Teller(engine, config, events)
    started = time.perf_counter()
    while now.step < config.n_steps:
        lr = schedules.learning_rate(config.optim, now.step, config.n_steps)
        examples = _examples(engine, config, batch_at(now.step), now.step, lifted)
        counts_S = _counts(engine, config, examples)
        norms = _term_norms(engine, config, examples, counts_S, now.step)
        done = _step(engine, config, examples, counts_S, lr, keeper.wishes(now))
        _add(now, done)
        if not done.finite:
            teller.skipped(now)
        elif norms:
            teller.gradients(now, norms)
        if _row_is_due(config, now.step) and now.interval.n_steps:
            valid = now.step in _validated_after(config)
            valid_S = validate(engine, config, held_out) if valid else None
            new = row(
                engine.lm, config, step=now.step, lr=lr, interval=now.interval, valid_S=valid_S
            )
            now.add_row(new)
            teller.row(new)
        seconds = time.perf_counter() - started
        now.useful_seconds, started = now.useful_seconds + seconds, started + seconds
        if done.finite:
            teller.step(now, done.sums_S, done.counts_S, done.gradient_norm, lr)
        _go_on_or_end(config, now, done, lr, keeper)
    return now.history


def example_at(
    batch: Batch,
    engine: Engine,
    config: TrainingConfig,
    step: int,
    lifted: Lifted | None = None,
) -> Example:
    """A micro-batch as the network meets it at this step: noisy, partly forced and dropped, and in
    a steering step aimed at."""
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
    nothing_to_force = engine.lm.bottleneck is None
    drawn = forcing.draw(batch, Chances() if nothing_to_force else chances, seed=seed, step=step)
    target = None
    phases = config.interleaving
    if phases is not None and lifted is not None and schedules.steers(phases, step, config.n_steps):
        n_layers = engine.lm.config.backbone.n_layers
        target = aim(batch, asked, lifted, phases, n_layers=n_layers, seed=seed, step=step)
    return Example(batch, asked, drawn, sparse=progress >= objective.sparse_from, aim=target)


@dataclass(frozen=True)
class _Done:
    """What one step came to, the same on every rank."""

    sums_S: Tensor
    counts_S: Tensor
    gradient_norm: float
    wishes: Wishes

    @property
    def finite(self) -> bool:
        return math.isfinite(self.gradient_norm) and bool(self.sums_S.isfinite().all())


def _examples(
    engine: Engine, config: TrainingConfig, batch: Batch, step: int, lifted: Lifted | None
) -> list[Example]:
    """This rank's micro-batches of a step."""
    parts = (batch.part(slice(k, None, config.micro_batches)) for k in range(config.micro_batches))
    return [example_at(part, engine, config, step, lifted) for part in parts]


def _counts(engine: Engine, config: TrainingConfig, examples: list[Example]) -> Tensor:
    """Denominators of a step, over all ranks (S)."""
    mine_S = torch.stack([counts(one, engine.lm, config.objective) for one in examples]).sum(0)
    return engine.total(mine_S)


def _term_norms(
    engine: Engine, config: TrainingConfig, examples: list[Example], counts_S: Tensor, step: int
) -> dict[Term, float]:
    """Gradient norms by term, at fixed steps: ranks need not agree on a clock."""
    every = config.gradient_norms_every
    if not every or (step + 1) % every:
        return {}
    return engine.gradient_norms(examples, weights(config.objective, counts_S))


def _step(
    engine: Engine,
    config: TrainingConfig,
    examples: list[Example],
    counts_S: Tensor,
    lr: float,
    wishes: Wishes,
) -> _Done:
    """One optimiser step. Sums, counts and wishes are those of all ranks."""
    weights_S = weights(config.objective, counts_S)
    sums_S = torch.zeros(len(Term))
    for one in examples[:-1]:
        found_S = engine.sums(one)
        engine.backward((found_S * weights_S).sum())
        sums_S += found_S.detach()
    last_S = engine.sums(examples[-1])
    sums_S += last_S.detach()
    told = engine.total(torch.cat([sums_S, torch.tensor([wishes.save, wishes.stop]).float()]))
    sums_S, wished = told[: len(Term)], told[len(Term) :].tolist()
    # One loss that is no number, on any rank, makes the whole gradient one: engines change nothing
    # then. A gradient can be finite where the loss was not, and would be stepped along.
    finite = 1.0 if bool(sums_S.isfinite().all()) else math.nan
    engine.backward((last_S * weights_S).sum() * finite)
    return _Done(sums_S, counts_S, engine.step(lr), Wishes(bool(wished[0]), bool(wished[1])))


def _add(now: Progress, done: _Done) -> None:
    now.step += 1
    if done.finite:
        now.interval.add(done.sums_S, done.counts_S, done.gradient_norm)
        now.in_a_row = 0
    else:
        now.n_skipped, now.in_a_row = now.n_skipped + 1, now.in_a_row + 1


def _go_on_or_end(
    config: TrainingConfig, now: Progress, done: _Done, lr: float, keeper: Keeper
) -> None:
    """Keep what is to be kept; raise where the run ends here."""
    if now.in_a_row > config.patience_non_finite:
        raise DivergedError(
            f"loss or gradient was not finite in {now.in_a_row} steps in a row, the last one step "
            f"{now.step - 1} at learning rate {lr:.2g} (limit {config.patience_non_finite}); lower "
            f"optim.peak_lr or lengthen optim.warmup, or compute in float32"
        )
    if now.step == config.n_steps:
        return
    if done.wishes.save or done.wishes.stop:
        keeper.save(now, done.wishes)
    if done.wishes.stop:
        raise StoppedError(f"stopped after step {now.step} of {config.n_steps}, as asked")


def _validated_after(config: TrainingConfig) -> set[int]:
    parts = config.validations
    return {round(config.n_steps * (part + 1) / parts) for part in range(parts)}


def _row_is_due(config: TrainingConfig, step: int) -> bool:
    return (
        step in _validated_after(config) or step % config.log_every == 0 or step == config.n_steps
    )
