"""Fine-tuning for instruction following under block diffusion (method: post-training).

The prompt stays whole; of the answer each block is noisy at a rate of its own, and its tokens alone
are asked for. Concepts go on being taught: an annotator labels the chunks of the answers.

    finetuned     the checkpoint, with the chat tokens in its vocabulary
    curve         the losses on the way
    scores        the loss and the four metrics on held-out answers, before and after; and in
                  answers.json how many answers were read, and how many did not fit
"""

import json
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path

from components import annotators, contracts, embedding
from components.alignment import cards_of, judge
from components.finetuning.config import FinetuneConfig
from components.finetuning.measures import (
    change_of,
    measure,
    scores_of,
    scores_of_alignment,
)
from components.finetuning.sequences import write_stream
from components.job import Job
from components.optimisation import (
    CONCEPTS_FILE,
    TOKENIZER_FILE,
    optimise,
    write_checkpoint,
    write_curve,
)
from components.scores import Scorer
from components.tokens import TokenStream
from components.windows import held_out
from model import chat
from model import checkpoint as checkpoints
from model import tokenizer as tokenizers
from model.events import Events, ignore
from model.language_model import LanguageModel
from model.tokenizer import Tokenizer

ANSWERS_FILE = "answers.json"


def finetune(
    messages: Path,
    checkpoint: Path,
    annotator: Path,
    finetuned: Path,
    curve: Path,
    scores: Path,
    config: FinetuneConfig,
    events: Events = ignore,
    scratch: Path | None = None,
) -> int:
    """Teach a checkpoint to answer. Returns the rows of the curve.

    Goes on from the newest savepoint in `scratch`, if a killed attempt left one there.
    """
    contracts.verify(checkpoint, contracts.CHECKPOINT)
    contracts.verify(annotator, contracts.ANNOTATOR)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = _job(messages, checkpoint, annotator, folder, config)
        history = optimise(job, config.ranks, events, scratch)
        write_checkpoint(
            finetuned,
            job,
            concepts=(checkpoint / CONCEPTS_FILE).read_text(),
            tokenizer=Path(job.tokens) / TOKENIZER_FILE,
            history=history,
            ranks=config.ranks,
            earlier=contracts.json_file(checkpoint, "training.json"),
        )
        _write_scores(scores, finetuned, job, config)
    return write_curve(curve, "finetuning", job, history)


def _job(
    messages: Path, checkpoint: Path, annotator: Path, folder: Path, config: FinetuneConfig
) -> Job:
    """Where to start from and what to read, written below `folder`."""
    start, tokens = folder / "start", folder / "tokens"
    for path in (start, tokens):
        path.mkdir()
    tokenizer = tokenizers.adopt(checkpoint / TOKENIZER_FILE, tokens / TOKENIZER_FILE)
    lm = _started(checkpoint, tokenizer, config)
    _check(lm, checkpoint, annotator, config)
    checkpoints.save(lm, start)
    labelling = None if lm.bottleneck is None else annotator
    packed = write_stream(messages, labelling, tokens, config, block=lm.config.backbone.block)
    (folder / ANSWERS_FILE).write_text(json.dumps(asdict(packed), indent=1) + "\n")
    return Job(
        tokens=str(tokens),
        folder=str(folder),
        network=lm.config,
        start_from=str(start),
        prevalence=(),
        training=config.training,
        domain_weights={},
        validation_sequences=config.validation_sequences,
        zero=config.zero,
        trained_eos=config.trained_eos,
    )


def _started(checkpoint: Path, tokenizer: Tokenizer, config: FinetuneConfig) -> LanguageModel:
    lm = checkpoints.load(checkpoint)
    if config.chat_rows == "related":
        return chat.with_chat_rows(lm, tokenizer)
    if lm.config.backbone.vocab_size < tokenizer.vocab_size:
        raise ValueError(
            f"chat_rows is 'kept', but {checkpoint} has {lm.config.backbone.vocab_size} rows for "
            f"{tokenizer.vocab_size} tokens: it was never fine-tuned; set chat_rows to 'related'"
        )
    return lm


def _check(lm: LanguageModel, checkpoint: Path, annotator: Path, config: FinetuneConfig) -> None:
    longest = lm.config.backbone.max_length
    if config.training.length > longest:
        raise ValueError(
            f"training.length is {config.training.length}, but the checkpoint reads {longest} "
            f"tokens; lower it"
        )
    ours = contracts.json_file(checkpoint, CONCEPTS_FILE)["digest"]
    theirs = contracts.json_file(annotator, annotators.FACTS_FILE)["library_digest"]
    if lm.bottleneck is not None and ours != theirs:
        raise contracts.ContractError(
            f"{annotator} labels with library {str(theirs)[:12]}…, but {checkpoint} was trained "
            f"with {str(ours)[:12]}…; take the annotator of the checkpoint's own run"
        )


def _write_scores(folder: Path, finetuned: Path, job: Job, config: FinetuneConfig) -> None:
    """Measure the network as it started and as it ended on the same held-out tokens."""
    scorer = Scorer(config.bootstrap_draws, config.training.seed)
    batches = held_out(job, TokenStream(Path(job.tokens)))
    networks = {
        "before": checkpoints.load(Path(job.start_from)), "after": checkpoints.load(finetuned)
    }  # fmt: skip
    measured = {when: measure(lm, batches, config.training.seed) for when, lm in networks.items()}
    found = change_of(measured["before"], measured["after"], scorer)
    for when, lm in networks.items():
        found |= scores_of(measured[when], when, scorer)
        if lm.bottleneck is not None:
            cards = cards_of(
                lm, finetuned, config.alignment_concepts, n_tokens=config.alignment_tokens
            )
            aligned = judge(cards, embedding.load(config.cutting.encoder).embed)
            found |= scores_of_alignment(aligned, config.cutting.encoder, when, scorer)
    text = {name: found[name].model_dump() for name in sorted(found)}
    shutil.copyfile(Path(job.folder) / ANSWERS_FILE, folder / ANSWERS_FILE)
    (folder / "scores.json").write_text(json.dumps(text, indent=1, allow_nan=False) + "\n")
    contracts.seal(folder, contracts.SCORES)
