"""Measure one point of the ladder: train a network to its budget, then its held-out loss.

One process, so that independent points run side by side.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from components import contracts, loader
from components.scaling.config import ScalePoint
from components.scaling.ladder import Settled, library, settle
from components.tokens import TokenStream
from model.diffusion import Batch
from model.engine import PlainEngine
from model.estimators import Estimator
from model.events import Events, ignore
from model.language_model import LanguageModel
from model.likelihood import estimate
from model.train import fit
from model.train_config import TrainingConfig

VALIDATION_SEQUENCES = 32
VALIDATIONS = 4
SHARE_ASKED = 0.5
"""Share of a chunk's tokens that vote on its concepts, on average over training."""


def measure(
    tokens: Path, concepts: Path, curve: Path, config: ScalePoint, events: Events = ignore
) -> int:
    """Train and measure one point. Returns the number of rows of its curve."""
    stream = TokenStream(tokens)
    all_K = _prevalence(concepts)
    prevalence_K = all_K[: library(config.size, len(all_K))]
    point = settle(
        config,
        vocab_size=stream.vocab_size,
        n_known=len(prevalence_K),
        specials=stream.specials,
    )
    training = _training(config, point)
    lm = LanguageModel(point.network, config.seed)
    if lm.bottleneck is not None:
        lm.bottleneck.known.start_at(prevalence_K, _votes_per_chunk(stream))
    engine = PlainEngine(lm, training)

    batches = loader.of_stream(
        stream,
        {},
        length=training.length,
        batch_sequences=training.batch_sequences,
        seed=config.seed,
    )

    def batch_at(step: int) -> Batch:
        return _known(batches.batch(step), len(prevalence_K))

    seen = VALIDATION_SEQUENCES * training.length
    held_out = [_known(batch, len(prevalence_K)) for batch in _held_out(stream, config, seen)]
    history = fit(engine, training, batch_at, held_out, events)
    final = _final(engine.finished(), stream, config)
    (curve / "run.json").write_text(json.dumps(_run(config, point, final), indent=1) + "\n")
    return contracts.write((asdict(row) for row in history.rows), curve, contracts.CURVE)


@dataclass(frozen=True)
class _Loss:
    value: float
    standard_error: float
    n_tokens: int


def _final(lm: LanguageModel, stream: TokenStream, config: ScalePoint) -> dict[str, _Loss]:
    """Held-out losses after the last step. Points of a ladder see the same masks."""
    names: tuple[Estimator, ...] = config.estimators
    if lm.config.backbone.attention == "causal":
        names = ("autoregressive",)
    found = {}
    for name in names:
        held_out = _held_out(stream, config, config.evaluation_tokens)
        loss = estimate(lm, held_out, name, seed=0)
        found[f"nll_nats_per_token_{name}"] = _Loss(
            loss.nats_per_token, loss.standard_error_nats, loss.n_tokens
        )
    return found


def _known(batch: Batch, n_known: int) -> Batch:
    """The batch with the labels that a smaller library has."""
    concepts_CM = torch.where(batch.concepts_CM < n_known, batch.concepts_CM, -1)
    return replace(batch, concepts_CM=concepts_CM)


def _held_out(stream: TokenStream, config: ScalePoint, n_tokens: int) -> Iterator[Batch]:
    """Windows of the validation split, evenly spread over it."""
    length = config.training.length
    n_windows = stream.n_windows("valid", length)
    n_wanted = max(1, min(n_windows, n_tokens // length))
    places = np.linspace(0, n_windows - 1, n_wanted).round().astype(np.int64)
    for start in range(0, n_wanted, config.evaluation_batch_sequences):
        yield stream.batch(
            "valid", length, places[start : start + config.evaluation_batch_sequences]
        )


def _training(config: ScalePoint, point: Settled) -> TrainingConfig:
    shared = config.training
    return TrainingConfig(
        n_tokens=point.n_tokens,
        batch_sequences=shared.batch_sequences,
        length=shared.length,
        micro_batches=shared.micro_batches,
        seed=config.seed,
        dtype=shared.dtype,
        optim=shared.optim,
        noise=shared.noise,
        objective=shared.objective,
        validations=min(VALIDATIONS, point.n_steps),
        log_every=max(1, point.n_steps // 20),
    )


def _run(config: ScalePoint, point: Settled, final: dict[str, _Loss]) -> dict[str, object]:
    return {
        "name": config.name,
        "family": config.family,
        "seed": config.seed,
        "n_parameters": point.n_parameters,
        "n_backbone_parameters": point.n_backbone_parameters,
        "n_tokens": point.n_tokens,
        "flops": point.flops,
        "budget_flops": config.budget_flops,
        "final": {name: asdict(loss) for name, loss in final.items()},
        "network": point.network.model_dump(mode="json"),
    }


def _prevalence(concepts: Path) -> Tensor:
    """Share of chunks that carry each concept, in the order of their ids."""
    table = contracts.read(concepts, contracts.CONCEPTS).sort_by("concept_id")
    return torch.tensor(table.column("prevalence").to_pylist(), dtype=torch.float32)


def _votes_per_chunk(stream: TokenStream) -> float:
    """Tokens that vote on the concepts of an average training chunk."""
    return max(1.0, SHARE_ASKED * stream.chunk_tokens("train"))
