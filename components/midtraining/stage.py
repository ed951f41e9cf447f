"""Mid-training: the network learns to stand on its own concepts (paper §10).

From a checkpoint: its own mixture of domains, uniform masking, teacher forcing to zero, the
two-term independence penalty, a learning rate that falls to zero. Some steps steer: they inject a
concept at its own words, and ask the network to notice and to say it. The optimiser starts anew.
"""

import tempfile
from pathlib import Path

from components import contracts, feeding
from components.library import known_concepts
from components.midtraining.config import MidtrainConfig
from components.optimisation import (
    CONCEPTS_FILE,
    Job,
    optimise,
    write_checkpoint,
    write_curve,
)
from components.tokens import TokenStream
from model.checkpoint import CONFIG
from model.config import LanguageModelConfig
from model.events import Events, ignore


def midtrain(
    tokens: Path,
    checkpoint: Path,
    lifted: Path,
    midtrained: Path,
    curve: Path,
    config: MidtrainConfig,
    events: Events = ignore,
    scratch: Path | None = None,
) -> int:
    """Go on training a checkpoint. Returns the rows of the curve.

    Goes on from the newest savepoint in `scratch`, if a killed attempt left one there.
    """
    contracts.verify(checkpoint, contracts.CHECKPOINT)
    network = LanguageModelConfig.model_validate_json((checkpoint / CONFIG).read_text())
    with (
        tempfile.TemporaryDirectory() as folder,
        feeding.opened(tokens, config.data, Path(folder) / feeding.CACHE_FOLDER) as stream,
    ):
        _check(stream, network, checkpoint)
        job = Job(
            tokens=str(tokens),
            folder=folder,
            network=network,
            start_from=str(checkpoint),
            prevalence=tuple(concept.prevalence for concept in known_concepts(checkpoint)),
            training=config.training,
            lifted=str(lifted) if config.training.interleaving is not None else "",
            domain_weights=config.domain_weights,
            data=config.data,
            validation_sequences=config.validation_sequences,
            zero=config.zero,
        )
        history = optimise(job, config.ranks, events, scratch)
        write_checkpoint(
            midtrained,
            job,
            concepts=(checkpoint / CONCEPTS_FILE).read_text(),
            tokenizer=stream.tokenizer_path,
            history=history,
            ranks=config.ranks,
            earlier=contracts.json_file(checkpoint, "training.json"),
        )
    return write_curve(curve, "midtraining", job, history)


def _check(stream: TokenStream, network: LanguageModelConfig, checkpoint: Path) -> None:
    theirs, ours = network.backbone.vocab_size, stream.vocab_size
    same = (checkpoint / "tokenizer.json").read_bytes() == stream.tokenizer_path.read_bytes()
    if theirs != ours or not same:
        raise ValueError(
            f"the checkpoint reads a vocabulary of {theirs} tokens and the token stream is "
            f"written in another of {ours}; pack the corpus with the checkpoint's tokenizer.json"
        )
