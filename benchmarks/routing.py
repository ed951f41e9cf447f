"""A pretraining step that gives gradients where there can be some, against dense heads everywhere.

2 × 256 tokens, width 256, 4 layers, 8,192 of the vocabulary, 33,732 known and 101,196 unknown
concepts of rank 256: half of the tokens masked, a tenth without residual, teacher forcing at 0.5.
"""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks import straightforward
from benchmarks.measure import Contest, race
from model import forcing
from model.config import BackboneConfig, BottleneckConfig, LanguageModelConfig
from model.diffusion import Batch, fixed, question
from model.forcing import Chances
from model.language_model import LanguageModel
from model.objective import Example, Objective
from model.routing import Flops, flops, reads_known, rows, straightforward_flops
from model.terms import Term
from model.train_config import ObjectiveConfig

TRAINED = [Term.LANGUAGE, Term.CONCEPT, Term.RECONSTRUCTION, Term.INDEPENDENCE]
LENGTH, WIDTH, N_CHUNKS, N_LABELS = 256, 256, 4, 16


def contests() -> Iterator[Contest]:
    """One step of the dense phase."""
    lm, config = _network(), ObjectiveConfig()
    one = _example(lm)
    objective = Objective(lm, config)
    counts = torch.tensor([float(one.asked.masked_BT.sum()), 2.0 * N_CHUNKS, 256.0, 2.0])

    def reference() -> tuple[Tensor, ...]:
        found = straightforward.sums(lm, config, one)
        loss = (torch.stack([found[term] for term in TRAINED]) / counts).sum()
        return loss, *torch.autograd.grad(loss, list(lm.parameters()))

    def ours() -> tuple[Tensor, ...]:
        loss = (objective(one)[TRAINED] / counts).sum()
        return loss, *torch.autograd.grad(loss, list(lm.parameters()))

    expected, found = reference(), ours()
    whole = float(torch.stack([grad.norm() for grad in expected[1:]]).norm())
    off = float(
        torch.stack([(a - b).norm() for a, b in zip(expected[1:], found[1:], strict=True)]).norm()
    )
    del expected, found
    mine, theirs = _flops(lm, one), straightforward_flops(_library(lm), WIDTH, 2 * LENGTH)
    yield race(
        "routing-aware step, full library", reference, ours,
        agreement=(
            f"known products {theirs.known / mine.known:.2f}× fewer (target 2), both heads' "
            f"{theirs.total / mine.total:.2f}×; gradients within {off / whole:.0e}"
        ),
        repeats=2,
    )  # fmt: skip


def _network() -> LanguageModel:
    backbone = BackboneConfig(
        vocab_size=8_192, width=WIDTH, n_layers=4, n_heads=8, n_kv_heads=4, mlp_width=1_024,
        max_length=LENGTH, block=64,
    )  # fmt: skip
    config = LanguageModelConfig(
        backbone=backbone,
        bottleneck=BottleneckConfig(n_known=33_732, n_unknown=101_196, rank=256),
        bos_id=0, eos_id=1, pad_id=2, mask_id=3, end_of_chunk_id=4,
    )  # fmt: skip
    return LanguageModel(config, seed=0)


def _library(lm: LanguageModel) -> BottleneckConfig:
    return lm.concepts.config


def _example(lm: LanguageModel) -> Example:
    draw = torch.Generator().manual_seed(0)
    ids_BT = torch.randint(8, 8_192, (2, LENGTH), generator=draw)
    chunk_T = torch.arange(LENGTH) * N_CHUNKS // LENGTH
    concepts_CM = torch.randint(0, 33_732, (2 * N_CHUNKS, N_LABELS), generator=draw)
    batch = Batch(
        ids_BT=ids_BT,
        chunk_BT=torch.stack([chunk_T, chunk_T + N_CHUNKS]),
        concepts_CM=concepts_CM,
        labelled_C=torch.ones(2 * N_CHUNKS, dtype=torch.bool),
        sample_ids_B=torch.arange(2),
    )
    chances = Chances(known=0.5, unknown=0.5, known_dropped=0.1, residual_dropped=0.1)
    return Example(
        batch=batch,
        asked=question(batch, fixed(0.5), 0, 0, lm.config),
        forcing=forcing.draw(batch, chances, seed=4, step=0),
        sparse=False,
    )


def _flops(lm: LanguageModel, one: Example) -> Flops:
    masked_BT = one.asked.masked_BT
    reading = rows(one.batch, masked_BT, masked_BT)
    teaching_C = functional.pad(forcing.supervised(one.batch), (0, 1))
    graded_N = reads_known(one.forcing, teaching_C[one.batch.chunk_BT[masked_BT]], masked_BT)
    return flops(
        _library(lm),
        WIDTH,
        n_rows=len(reading.place_N),
        n_masked=reading.n_summed,
        n_voting=len(reading.votes),
        n_graded=int(graded_N.sum()),
    )
