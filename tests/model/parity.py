"""One case trained by either engine: what `test_zero` compares, and the rank that trains many.

    python -m tests.model.parity job.json      under torchrun: every case of the job, in turn

Ranks take very different shares of the work: odd sequences are mostly padding, one is nothing else,
so that masked tokens, chunks and sequences are counted unequally and some parts have none at all.
"""

import os
import sys
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field, NonNegativeInt
from torch import Tensor

from components import launch
from model.config import Config, Family
from model.diffusion import Batch
from model.engine import Engine, PlainEngine
from model.events import Event
from model.interleaving import Lifted
from model.language_model import LanguageModel
from model.train import fit
from model.train_config import InterleavingConfig, NoiseConfig, TrainingConfig
from model.zero_config import ZeroConfig
from tests.model import tiny

SEQUENCES, N_STEPS = 8, 20
POISONED_RANK = 1
PHASES = InterleavingConfig(phases=2, phase=0.2, warmup=0.2, gap=0.2)
LIFTED = Lifted(torch.arange(32)[: 4 * tiny.KNOWN].view(tiny.KNOWN, 4), torch.ones(tiny.KNOWN))


class Case(Config):
    """One optimisation."""

    family: Family = "cdlm_concept"
    network: dict[str, bool | None] = Field(default={})
    """Options that are not the tests' own: `tied`, `residual`, `rank`."""

    dtype: Literal["float32", "bfloat16"] = "float32"
    micro_batches: int = 1
    zero: ZeroConfig = ZeroConfig()

    poisoned: tuple[NonNegativeInt, ...] = ()
    """Steps in which one rank's loss is no number."""

    steered: bool = False
    """Whether every fourth of the run is a phase of steering steps, which teach other weights."""

    measured: bool = False
    """Whether each term's own gradient is measured on the way, in every fifth step."""

    @property
    def name(self) -> str:
        zero = self.zero.model_dump(exclude_defaults=True)
        rest = self.model_dump(exclude_defaults=True, exclude={"zero"})
        return "-".join(f"{key}={value}" for key, value in {**rest, **zero}.items()) or "default"

    @property
    def training(self) -> TrainingConfig:
        return tiny.training(
            n_tokens=N_STEPS * SEQUENCES * tiny.LENGTH,
            batch_sequences=SEQUENCES,
            micro_batches=self.micro_batches,
            dtype=self.dtype,
            noise=NoiseConfig(clean_prefix=0.3),
            interleaving=PHASES if self.steered else None,
            log_every=1,
            gradient_norms_every=5 if self.measured else 0,
        )


class Job(Config):
    """What the ranks are told."""

    cases: tuple[Case, ...]


Found = dict[str, Any]
"""`losses` (steps, terms), gradient `norms` (steps) and those of single terms (`told`), the number
of steps `skipped` and the trained `weights` by name."""


def batch_at(step: int) -> Batch:
    """The global batch of a step."""
    batch = tiny.batch(SEQUENCES, seed=step % 7, first_sample=SEQUENCES * step)
    batch.ids_BT[1::2, 7:] = tiny.SPECIALS.pad_id
    batch.ids_BT[5] = tiny.SPECIALS.pad_id
    batch.chunk_BT[batch.ids_BT == tiny.SPECIALS.pad_id] = -1
    return batch


def train(case: Case, engine: Engine) -> Found:
    """Losses and weights after all steps, the same on every rank."""

    def share(step: int) -> Batch:
        return batch_at(step).part(slice(engine.rank, None, engine.world))

    if case.poisoned:
        _poison(engine, case)
    norms = _norms(engine)
    lifted = LIFTED if case.steered else None
    told: list[Event] = []
    history = fit(
        engine, case.training, share, [tiny.batch(3, seed=99)], told.append, lifted=lifted
    )
    losses = [
        [row.nll_nats, row.concept_loss or 0.0, row.valid_nll_nats or 0.0] for row in history.rows
    ]
    weights = {name: one.detach().clone() for name, one in engine.finished().named_parameters()}
    return {
        "losses": torch.tensor(losses, dtype=torch.float64),
        "norms": torch.tensor(norms, dtype=torch.float64),
        "told": [event.metrics for event in told if "gradient_norm/language" in event.metrics],
        "skipped": history.n_skipped,
        "weights": weights,
    }


def plain(case: Case) -> Found:
    """The same in one process, without DeepSpeed."""
    return train(case, PlainEngine(_lm(case), case.training))


def _lm(case: Case) -> LanguageModel:
    return tiny.lm(case.family, **case.network)


def _norms(engine: Engine) -> list[float]:
    """Norms of the gradients of steps to come."""
    step, norms = engine.step, []

    def noted(lr: float) -> float:
        norms.append(step(lr))
        return norms[-1]

    engine.step = noted
    return norms


def _poison(engine: Engine, case: Case) -> None:
    backward, calls = engine.backward, 0

    def poisoned(loss: Tensor) -> None:
        nonlocal calls
        step, calls = calls // case.micro_batches, calls + 1
        bad = step in case.poisoned and engine.rank == min(POISONED_RANK, engine.world - 1)
        backward(loss * float("nan") if bad else loss)

    engine.backward = poisoned


def _work(path: Path) -> None:
    from model.zero import ZeroEngine, close

    for index, case in enumerate(Job.model_validate_json(path.read_text()).cases):
        engine = ZeroEngine(_lm(case), case.training, case.zero)
        found = train(case, engine)
        if engine.rank == 0:
            torch.save(found, path.parent / f"{index}.pt")
    close()


def main() -> None:
    path = Path(sys.argv[1])
    with launch.reporting(path.parent, int(os.environ["RANK"])):
        _work(path)


if __name__ == "__main__":
    main()
