"""Steps of training at the sizes of the recipe `demo`, on one thread.

    contest()     a step with concepts against one without, beside the FLOPs of both
    plain_loop()  `model.train.fit` against the loop one would write by hand

Batches are made up once, so that reading them costs nothing: the loader has its own contest.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.measure import Contest, race
from model import accounting
from model.config import Family, LanguageModelConfig
from model.diffusion import Batch, question
from model.engine import PlainEngine, dtype
from model.language_model import LanguageModel
from model.objective import counts
from model.optim import adamw, set_learning_rate
from model.schedules import learning_rate, noise
from model.terms import Term
from model.tokenizer import SpecialIds
from model.train import example_at, fit
from model.train_config import ObjectiveConfig, TrainingConfig
from pipelines.demo import demo

Precision = Literal["auto", "float32", "bfloat16"]

VOCAB, KNOWN, CHUNK = 4_096, 166, 64
"""Of the demo's last run: pieces, concepts, and tokens of a middling chunk."""

N_SPECIALS = 8
STEPS, REPEATS = 3, 5
TARGET = 1.25
"""Time of a step with concepts over one without, at most so many times their FLOPs' ratio."""


@dataclass(frozen=True)
class Share:
    """What concepts add to a step: processor seconds against FLOPs."""

    contest: Contest
    flops_ratio: float

    @property
    def over_flops(self) -> float:
        """Ratio of the times over the ratio of the FLOPs; 1 where a FLOP costs the same."""
        return self.contest.seconds / self.contest.reference_seconds / self.flops_ratio

    def __str__(self) -> str:
        without, ours = self.contest.reference_seconds / STEPS, self.contest.seconds / STEPS
        return (
            f"{self.contest.name:<32} without   {without:8.3f} s   with {ours:8.3f} s   "
            f"{ours / without:5.2f}× in time, {self.flops_ratio:.2f}× in FLOPs: "
            f"{self.over_flops:.2f} (≤ {TARGET})   {self.contest.agreement} (n={self.contest.n})"
        )


def contest() -> Share:
    """CDLM with concepts against CDLM: the same backbone, batches and noise."""
    with_concepts, without = network("cdlm_concept"), network("cdlm")
    flops = [accounting.training_flops_per_token(one, length()) for one in (with_concepts, without)]
    off = abs(_first_loss(with_concepts) - _first_loss(without))
    found = race(
        "step of CDLM with concepts", _steps(without), _steps(with_concepts),
        agreement=f"first losses within {off:.0e} nats, the residual kept", repeats=REPEATS,
    )  # fmt: skip
    return Share(found, flops[0] / flops[1])


def plain_loop(precision: Literal["float32", "bfloat16"], family: Family) -> Contest:
    """`fit` against forward, loss, backward, clip, step: the same network, batches and noise."""
    config = training(precision, ObjectiveConfig(reduction="token_mean"))
    ours, theirs = (LanguageModel(network(family)).train() for _ in range(2))
    engine, optimizer = PlainEngine(ours, config), adamw(theirs, config.optim)

    def by_hand() -> float:
        for step in range(config.n_steps):
            batch, rates = batch_at(step), noise(config.noise, step / config.n_steps)
            asked = question(batch, rates, config.seed, step, theirs.config)
            with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
                state_ND = theirs.hidden(asked.noisy_BT)[asked.masked_BT]
                logits_NV = theirs.unembed(state_ND).float()
            loss = functional.cross_entropy(logits_NV, asked.target_BT[asked.masked_BT])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(theirs.parameters(), config.optim.clip_norm)
            set_learning_rate(optimizer, learning_rate(config.optim, step, config.n_steps))
            optimizer.step()
            optimizer.zero_grad()
        return float(loss.detach())

    def by_fit() -> float:
        return fit(engine, config, batch_at, []).last.nll_nats

    off = abs(by_hand() / by_fit() - 1.0)
    return race(
        f"fit, {family}, {precision}", by_hand, by_fit,
        agreement=f"losses of step {STEPS} within {off:.0e}", repeats=REPEATS,
    )  # fmt: skip


def network(family: Family) -> LanguageModelConfig:
    """The demo's network in one of the families."""
    specials = SpecialIds(*range(N_SPECIALS))
    wanted = demo().training.network.model_copy(update={"family": family})
    return wanted.language_model(vocab_size=VOCAB, n_known=KNOWN, specials=specials)


def training(
    precision: Precision = "auto", objective: ObjectiveConfig | None = None
) -> TrainingConfig:
    """The demo's optimisation, a few steps long."""
    whole = demo().training.training
    return whole.model_copy(
        update={
            "n_tokens": STEPS * whole.tokens_per_step, "validations": 1, "log_every": 1,
            "dtype": precision, "objective": objective or whole.objective,
        }
    )  # fmt: skip


def length() -> int:
    return demo().training.training.length


@cache
def batch_at(step: int) -> Batch:
    """A global batch of made-up sequences, chunks and labels."""
    draw = torch.Generator().manual_seed(step)
    n_sequences = demo().training.training.batch_sequences
    per_sequence = length() // CHUNK
    n_chunks = n_sequences * per_sequence
    ids_BT = torch.randint(N_SPECIALS, VOCAB, (n_sequences, length()), generator=draw)
    chunk_BT = torch.arange(n_chunks).view(n_sequences, -1).repeat_interleave(CHUNK, dim=1)
    concepts_CM = torch.rand(n_chunks, KNOWN, generator=draw).argsort(dim=1)[:, :5]
    samples_B = step * n_sequences + torch.arange(n_sequences)
    return Batch(ids_BT, chunk_BT, concepts_CM, torch.ones(n_chunks, dtype=torch.bool), samples_B)


def _steps(network: LanguageModelConfig) -> Callable[[], object]:
    config = training()
    engine = PlainEngine(LanguageModel(network), config)

    def some() -> object:
        return fit(engine, config, batch_at, [])

    some()
    return some


def _first_loss(network: LanguageModelConfig) -> float:
    """Nats per masked token before any step, in float32, with nothing dropped."""
    kept = ObjectiveConfig(residual_dropout=0.0)
    config = training("float32", kept)
    engine = PlainEngine(LanguageModel(network), config)
    example = example_at(batch_at(0), engine, config, 0)
    with torch.no_grad():
        sums_S: Tensor = engine.sums(example)
    return float(sums_S[Term.NLL] / counts(example, engine.lm, kept)[Term.NLL])


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(f"products in {str(dtype('auto')).removeprefix('torch.')}")
    print(contest(), flush=True)
    for precision in ("float32", "bfloat16"):
        for family in ("ar", "cdlm"):
            found = plain_loop(precision, family)
            overhead = found.seconds / found.reference_seconds - 1
            print(f"{found}   overhead {overhead:+.1%} (≤ 3 %)", flush=True)
