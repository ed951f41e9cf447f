"""What a training run says of itself: a row of the curve by step, how it goes every few seconds.

Rows are part of the result and come at fixed steps. The rest is for whoever watches and for
tracking (paper appendix L): it comes by the clock, and nothing is computed from it.

Shape suffixes: S term of the objective
"""

import time
from collections.abc import Mapping
from dataclasses import asdict

import torch
from torch import Tensor

from model import accounting
from model.curve import Interval, Row
from model.device import here, peak_flops
from model.engine import Engine, dtype
from model.events import Event, Events
from model.progress import Progress
from model.terms import N_NOISE_BINS, Term
from model.train_config import TrainingConfig

_NAMES = {
    Term.CONCEPT: "recent_concept_loss",
    Term.RECONSTRUCTION: "recent_reconstruction_loss",
    Term.INDEPENDENCE: "recent_independence_loss",
    Term.RESPOND: "recent_respond_loss",
    Term.EXPRESS: "recent_express_loss",
    Term.NLL: "recent_nll_nats",
    Term.CONTRIBUTION: "recent_concept_contribution",
    Term.ACTIVE_KNOWN: "active_known_per_token",
    Term.LABELLED: "mean_activation/labelled",
    Term.UNLABELLED: "mean_activation/unlabelled",
    **{
        Term(Term.NLL_BIN_0 + k): f"nll_nats_at_rate/{k / N_NOISE_BINS:.1f}"
        for k in range(N_NOISE_BINS)
    },
}
"""Means over the seconds since the line before. A bin is named by its lowest masking rate."""

_GRADIENTS = {
    Term.LANGUAGE: "gradient_norm/language",
    Term.CONCEPT: "gradient_norm/concept",
    Term.RECONSTRUCTION: "gradient_norm/reconstruction",
    Term.INDEPENDENCE: "gradient_norm/independence",
    Term.RESPOND: "gradient_norm/respond",
    Term.EXPRESS: "gradient_norm/express",
}
"""Of one step, each with the term's weight in the loss, before clipping (`model.term_norms`)."""

_PARTS = {
    Term.NORM_KNOWN: "known", Term.NORM_UNKNOWN: "unknown", Term.NORM_RESIDUAL: "residual",
}  # fmt: skip


class Teller:
    """Rank 0 speaks, the others are silent."""

    def __init__(self, engine: Engine, config: TrainingConfig, events: Events) -> None:
        self._silent = engine.rank != 0
        self._config = config
        self._events = events
        self._flops_per_token = accounting.training_flops_per_token(engine.lm.config, config.length)
        peak = peak_flops(here()) if dtype(config.dtype) == torch.bfloat16 else None
        self._peak_flops = None if peak is None else peak * engine.world
        self._recent = Interval()
        self._started = time.perf_counter()

    def row(self, new: Row) -> None:
        """A new row of the curve."""
        numbers = {name: value for name, value in asdict(new).items() if value is not None}
        numbers["learning_rate"] = numbers.pop("lr")
        self._say(numbers.pop("step"), numbers)

    def skipped(self, now: Progress) -> None:
        """The last step left everything as it was."""
        self._say(
            now.step,
            {"steps_skipped": now.n_skipped, "steps_skipped_in_a_row": now.in_a_row},
            f"step {now.step - 1} was skipped: its loss or gradient was not finite ({now.in_a_row} "
            f"in a row, limit {self._config.patience_non_finite})",
        )

    def gradients(self, now: Progress, norms: Mapping[Term, float]) -> None:
        """How hard each term pulled in the last step."""
        self._say(now.step, {_GRADIENTS[term]: norm for term, norm in norms.items()})

    def step(
        self, now: Progress, sums_S: Tensor, counts_S: Tensor, gradient_norm: float, lr: float
    ) -> None:
        """A step that counted; every few seconds the means over the last ones are told."""
        self._recent.add(sums_S, counts_S, gradient_norm)
        seconds = time.perf_counter() - self._started
        if seconds < self._config.tell_seconds and now.step != self._config.n_steps:
            return
        rate = self._recent.n_steps * self._config.tokens_per_step / seconds
        left = self._config.n_steps - now.step
        numbers = {
            **_terms(self._recent),
            "gradient_norm": gradient_norm,
            "learning_rate": lr,
            "tokens_per_second": rate,
            "flops_per_second": self._flops_per_token * rate,
            "left_seconds": left * seconds / self._recent.n_steps,
            "goodput": now.goodput,
            "restarts": now.n_restarts,
            "steps_skipped": now.n_skipped,
        }
        if self._peak_flops is not None:
            numbers["mfu"] = self._flops_per_token * rate / self._peak_flops
        self._say(now.step, numbers)
        self._recent, self._started = Interval(), time.perf_counter()

    def _say(self, step: int, numbers: dict[str, float], message: str = "") -> None:
        if not self._silent:
            metrics = {name: float(value) for name, value in numbers.items()}
            self._events(Event(step, self._config.n_steps, metrics, message))


def _terms(recent: Interval) -> dict[str, float]:
    """The terms that were counted, and the parts' shares of the state by their norms."""
    means = recent.means_S.tolist()
    counted = (recent.counts_S > 0).tolist()
    found = {name: means[term] for term, name in _NAMES.items() if counted[term]}
    whole = sum(means[term] for term in _PARTS)
    if whole > 0.0:
        found |= {f"share_{part}": means[term] / whole for term, part in _PARTS.items()}
    return found
