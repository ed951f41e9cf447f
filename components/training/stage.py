"""Training: block-causal masked diffusion with a concept bottleneck (paper §5, §9).

Weights start from the seed, the known concepts' biases from the library's prevalences. The
checkpoint carries the library and the tokenizer it was trained with.
"""

import json
import tempfile
from pathlib import Path

from components import contracts, feeding
from components.library import open_library
from components.optimisation import Job, optimise, prevalences, write_checkpoint, write_curve
from components.training.config import TrainConfig
from model.events import Events, ignore


def train(
    tokens: Path,
    concepts: Path,
    checkpoint: Path,
    curve: Path,
    config: TrainConfig,
    events: Events = ignore,
    scratch: Path | None = None,
) -> int:
    """Train a network from fresh weights. Returns the rows of its curve.

    Goes on from the newest savepoint in `scratch`, if a killed attempt left one there.
    """
    library = _library(concepts)
    prevalence = prevalences(concepts)
    with (
        tempfile.TemporaryDirectory() as folder,
        feeding.opened(tokens, config.data, Path(folder) / feeding.CACHE_FOLDER) as stream,
    ):
        network = config.network.language_model(
            vocab_size=stream.vocab_size, n_known=len(prevalence), specials=stream.specials
        )
        job = Job(
            tokens=str(tokens),
            folder=folder,
            network=network,
            start_from="",
            prevalence=prevalence,
            training=config.training,
            domain_weights=config.domain_weights,
            data=config.data,
            validation_sequences=config.validation_sequences,
            zero=config.zero,
        )
        history = optimise(job, config.ranks, events, scratch)
        write_checkpoint(
            checkpoint,
            job,
            concepts=library,
            tokenizer=stream.tokenizer_path,
            history=history,
            ranks=config.ranks,
            earlier={},
        )
    return write_curve(curve, "training", job, history)


def _library(concepts: Path) -> str:
    """The concepts as the checkpoint carries them, bound to their library by its digest."""
    rows = contracts.read(concepts, contracts.CONCEPTS).sort_by("concept_id")
    columns = ["concept_id", "name", "description", "kind", "prevalence"]
    digest = open_library(concepts).digest
    return json.dumps({"digest": digest, "concepts": rows.select(columns).to_pylist()}, indent=1)
