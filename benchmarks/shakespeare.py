"""The nanoGPT CPU recipe on the characters of Shakespeare (`python -m benchmarks.shakespeare`).

4 layers, 4 heads, width 128, context 64, batch 12, 2,000 steps, learning rate 1e-3 → 1e-4 after
100 steps of warm-up, β₂ .99: 0.80 M parameters, 1.54 M characters, one thread, float32.

    ar           published: 1.88 nats per character (20 batches)
    window       full masked diffusion; a straightforward prototype came to 3.02 (NELBO)
    blocks       block-causal diffusion in blocks of 16

Then AR races a plain loop over the same network, 150 steps a turn. About ten minutes of one
processor; `--only ar` runs one family. `CLEARSTORY_SHAKESPEARE` names the text, 1,115,394
characters, where it is not `../shared/golden/tinyshakespeare/input.txt`; without it nothing runs.

Shape suffixes used in this file:
    B batch   T position   V vocabulary   M character of the text
"""

import argparse
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.measure import Contest, race
from model import accounting, schedules
from model.config import BackboneConfig, LanguageModelConfig
from model.diffusion import Batch
from model.engine import PlainEngine
from model.estimators import Estimator
from model.language_model import LanguageModel
from model.likelihood import Estimate, estimate
from model.train import fit
from model.train_config import NoiseConfig, ObjectiveConfig, OptimConfig, TrainingConfig

TEXT = Path("../shared/golden/tinyshakespeare/input.txt")
CONTEXT, BATCH, N_STEPS = 64, 12, 2_000
N_WINDOWS, WINDOWS_AT_ONCE = 4_800, 96
SAMPLES = 4
"""Draws of noise for each window of a bound."""


@dataclass(frozen=True)
class Text:
    """Characters as ids; five specials follow the characters."""

    train_M: Tensor
    valid_M: Tensor
    n_characters: int


@dataclass(frozen=True)
class Family:
    """One way to be trained and measured on the text."""

    name: str
    block: int
    """0: autoregressive."""

    estimator: Estimator
    at_most_nats: float | None
    """To reach, within two standard errors."""

    @property
    def length(self) -> int:
        """Tokens of a sequence: next-token targets need one more than the context."""
        return CONTEXT if self.block else CONTEXT + 1


AR = Family("ar", 0, "autoregressive", 1.90)
FAMILIES = (
    AR,
    Family("window", CONTEXT, "per_block_elbo", 3.02),
    Family("blocks", 16, "per_block_elbo", None),
)


def main(names: Sequence[str] = ()) -> None:
    """A line for each family, and one for the race; with names, for those families alone."""
    path = Path(os.environ.get("CLEARSTORY_SHAKESPEARE", TEXT))
    if not path.is_file():
        print(f"skipped: no text at {path}; name it in CLEARSTORY_SHAKESPEARE")
        return
    text = read(path)
    for family in FAMILIES:
        if not names or family.name in names:
            began = time.process_time()
            lm = train(family, text, N_STEPS)
            seconds = time.process_time() - began
            print(_line(family, lm, measure(lm, family, text), seconds), flush=True)
    if not names:
        print(contest(text), flush=True)


def read(path: Path) -> Text:
    """The text, nine tenths of it to train on."""
    characters = path.read_text(encoding="utf-8")
    alphabet = sorted(set(characters))
    ids = {character: index for index, character in enumerate(alphabet)}
    ids_M = torch.tensor([ids[character] for character in characters])
    cut = int(0.9 * len(ids_M))
    return Text(ids_M[:cut], ids_M[cut:], len(alphabet))


def network(family: Family, n_characters: int) -> LanguageModelConfig:
    """0.80 M parameters, of which 9 k are the embedding."""
    backbone = BackboneConfig(
        vocab_size=n_characters + 5, width=128, n_layers=4, n_heads=4, n_kv_heads=4,
        mlp_width=344, max_length=family.length, block=family.block or CONTEXT,
        attention="block_causal" if family.block else "causal", norm_order="pre",
        rope_base=10_000.0, clip_qkv=None,
    )  # fmt: skip
    eos_id, pad_id, bos_id, end_of_chunk_id, mask_id = range(n_characters, n_characters + 5)
    return LanguageModelConfig(
        backbone=backbone, bottleneck=None, bos_id=bos_id, eos_id=eos_id, pad_id=pad_id,
        mask_id=mask_id, end_of_chunk_id=end_of_chunk_id,
    )  # fmt: skip


def training(family: Family, n_steps: int) -> TrainingConfig:
    """The recipe's numbers. In diffusion each block counts alike: the bound's own weighting."""
    return TrainingConfig(
        n_tokens=n_steps * BATCH * family.length,
        batch_sequences=BATCH,
        length=family.length,
        dtype="float32",
        optim=OptimConfig(
            peak_lr=1e-3, warmup=0.05, decay=0.95, decay_shape="cosine", floor=0.1, beta2=0.99
        ),
        noise=NoiseConfig(low=1e-3, high=1.0),
        objective=ObjectiveConfig(reduction="block_mean" if family.block else "token_mean"),
        validations=1,
        log_every=n_steps,
    )


def train(family: Family, text: Text, n_steps: int) -> LanguageModel:
    """By `model.train.fit`."""
    lm = LanguageModel(network(family, text.n_characters), seed=0)
    config = training(family, n_steps)
    engine = PlainEngine(lm, config)
    draw = _windows(text.train_M, family.length, BATCH)
    fit(engine, config, draw, [draw(n_steps)])
    return engine.finished()


def train_plainly(text: Text, n_steps: int) -> LanguageModel:
    """AR as most would write it: the same network, batches, rates and decay."""
    lm = LanguageModel(network(AR, text.n_characters), seed=0)
    config = training(AR, n_steps).optim
    decayed = [one for one in lm.backbone.parameters() if one.ndim == 2]
    spared = [one for one in lm.parameters() if one.ndim < 2 or one is lm.embedding.weight]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": config.weight_decay},
         {"params": spared, "weight_decay": 0.0}],
        lr=config.peak_lr, betas=(config.beta1, config.beta2),
    )  # fmt: skip
    draw = _windows(text.train_M, AR.length, BATCH)
    for step in range(n_steps):
        for group in optimizer.param_groups:
            group["lr"] = schedules.learning_rate(config, step, n_steps)
        ids_BT = draw(step).ids_BT
        logits_BTV = lm(ids_BT[:, :-1])
        loss = F.cross_entropy(logits_BTV.flatten(0, 1), ids_BT[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(lm.parameters(), config.clip_norm)
        optimizer.step()
    return lm.eval()


def contest(text: Text, n_steps: int = 150) -> Contest:
    """`fit` against the plain loop, AR, in turns."""
    ours, plain = (
        measure(lm, AR, text, n_windows=960).nats_per_token
        for lm in (train(AR, text, n_steps), train_plainly(text, n_steps))
    )
    return race(
        f"{n_steps} steps of AR", lambda: train_plainly(text, n_steps),
        lambda: train(AR, text, n_steps), agreement=f"{ours:.4f} and {plain:.4f} nats", repeats=3,
    )  # fmt: skip


def measure(lm: LanguageModel, family: Family, text: Text, n_windows: int = N_WINDOWS) -> Estimate:
    """Held-out nats per character over random windows, the same for all of a length."""
    draw = _windows(text.valid_M, family.length, WINDOWS_AT_ONCE)
    batches = (draw(index) for index in range(-(-n_windows // WINDOWS_AT_ONCE)))
    samples = SAMPLES if family.block else 1
    return estimate(lm, batches, family.estimator, seed=1, samples=samples)


def _windows(ids_M: Tensor, length: int, n_windows: int) -> Callable[[int], Batch]:
    """Random windows of a text, by the number of their batch."""

    def draw(number: int) -> Batch:
        source = np.random.Generator(np.random.Philox(key=[length, number]))
        starts_B = torch.from_numpy(source.integers(0, len(ids_M) - length + 1, n_windows))
        ids_BT = ids_M[starts_B[:, None] + torch.arange(length)]
        return Batch(
            ids_BT=ids_BT,
            chunk_BT=torch.full_like(ids_BT, -1),
            concepts_CM=torch.empty(0, 1, dtype=torch.int64),
            labelled_C=torch.empty(0, dtype=torch.bool),
            sample_ids_B=torch.arange(number * n_windows, (number + 1) * n_windows),
        )

    return draw


def _line(family: Family, lm: LanguageModel, found: Estimate, seconds: float) -> str:
    n_parameters = accounting.parameters(lm.config).total
    limit = ""
    if family.at_most_nats is not None:
        reached = found.nats_per_token <= family.at_most_nats + 2 * found.standard_error_nats
        limit = f"   {family.at_most_nats:.2f} + 2 se: {'reached' if reached else 'NOT reached'}"
    return (
        f"{family.name:<14} {n_parameters / 1e6:.2f} M   {found.nats_per_token:.4f} ± "
        f"{found.standard_error_nats:.4f} nats per character (n = {found.n_sequences} windows × "
        f"{found.samples})   {seconds:5.1f} processor seconds{limit}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shakespeare")
    parser.add_argument("--only", choices=[family.name for family in FAMILIES], action="append")
    torch.set_num_threads(1)
    main(parser.parse_args().only or ())
