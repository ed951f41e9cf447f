"""Evaluate a checkpoint on held-out text: capability, interpretability, likelihood (paper §7).

scores.json    {name: {value, n, n_of, low, high, unit, condition, note}}
concepts.csv   recognition and alignment of each concept
scores.png     by domain, by concept, by part
questions.jsonl   answers to packaged benchmarks, where the config asks for some
"""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from components import contracts, embedding
from components.alignment import Alignment, Card, cards_of, judge
from components.capability.measure import measure, write_questions
from components.evaluation import figure
from components.evaluation.concepts import Recognition, recognise
from components.evaluation.config import EvaluateConfig
from components.evaluation.held_out import HeldOut
from components.evaluation.reading import Floats, Ledger, Reading, read, read_clean, unigram_nats
from components.evaluation.scores import (
    of_agreement,
    of_alignment,
    of_bytes,
    of_concepts,
    of_dependence,
    of_estimate,
    of_losses,
    of_parts,
    of_recognition,
)
from components.examinee import Examinee
from components.networks import TOKENIZER_FILE, Network
from components.scores import Scorer, Scores
from components.tokens import TokenStream
from model import checkpoint as checkpoints
from model.diffusion import Batch
from model.estimators import DiffusionEstimator, Estimator
from model.language_model import LanguageModel
from model.likelihood import estimate, token_nats
from model.metrics import presence
from model.tokenizer import Tokenizer


def evaluate(checkpoint: Path, tokens: Path, scores: Path, config: EvaluateConfig) -> int:
    """Measure everything. Returns the number of scores."""
    sealed = contracts.verify(checkpoint, contracts.CHECKPOINT)
    lm = checkpoints.load(checkpoint)
    stream = TokenStream(tokens)
    _check(lm, stream, config)
    held_out = HeldOut(stream, config.splits, config.length)
    scorer = Scorer(config.bootstrap_draws, config.seed)
    reading = read(lm, held_out, config, unigram_nats(stream, config))
    suffix = "" if lm.config.backbone.attention == "causal" else "_rate_0.5"

    found = of_losses(reading.ledger, scorer, suffix) | _likelihoods(lm, held_out, config, scorer)
    auroc_L = np.zeros(0)
    if lm.config.bottleneck is not None:
        study = _concepts(lm, checkpoint, held_out, reading, config, scorer)
        found |= of_parts(reading, scorer, suffix) | of_agreement(reading, scorer) | study.scores
        auroc_L = study.recognition.auroc_L
        _write_concepts(study, scores / "concepts.csv")
    if config.capability is not None:
        network = Network(lm, Tokenizer(checkpoint / TOKENIZER_FILE), sealed.digest)
        measured = measure(Examinee(network, config.capability.likelihood), config.capability)
        found |= measured.scores
        write_questions(measured, scores)
    text = {name: score.model_dump() for name, score in found.items()}
    (scores / "scores.json").write_text(json.dumps(text, indent=1, allow_nan=False) + "\n")
    figure.draw(found, auroc_L, suffix, scores / "scores.png")
    contracts.seal(scores, contracts.SCORES)
    return len(found)


def _check(lm: LanguageModel, stream: TokenStream, config: EvaluateConfig) -> None:
    backbone = lm.config.backbone
    if stream.vocab_size != backbone.vocab_size:
        raise ValueError(
            f"the tokens have a vocabulary of {stream.vocab_size}, the checkpoint of "
            f"{backbone.vocab_size}; evaluate on tokens packed with the checkpoint's tokenizer"
        )
    n_known = 0 if lm.config.bottleneck is None else lm.config.bottleneck.n_known
    highest = int(stream.spans.concepts_NM.max(initial=-1))
    if n_known and highest >= n_known:
        raise ValueError(
            f"the tokens carry concept {highest}, but the checkpoint knows 0 … {n_known - 1}; "
            f"evaluate on tokens labelled with the checkpoint's library"
        )
    if config.length > backbone.max_length:
        raise ValueError(
            f"length is {config.length}, but the checkpoint reads {backbone.max_length} tokens; "
            f"lower length"
        )


def _likelihoods(
    lm: LanguageModel, held_out: HeldOut, config: EvaluateConfig, scorer: Scorer
) -> Scores:
    """The estimators of the family, and bits per byte from the one that bounds the NLL."""
    if lm.config.backbone.attention == "causal":
        ledger = _by_document(lm, held_out, config, "autoregressive", samples=1)
        return _bytes(ledger, held_out, scorer, "next-token NLL")
    ledger = _by_document(lm, held_out, config, "per_block_elbo", samples=config.elbo_samples)
    note = f"per-block ELBO, {config.elbo_samples} draw(s) of each block's rate"
    found = _bytes(ledger, held_out, scorer, f"upper bound: {note}")
    found["nll_nats_per_token_per_block_elbo"] = scorer.ratio(
        ledger["nats"], ledger["tokens"], "nats per token", "capability", note
    )
    names: tuple[DiffusionEstimator, ...] = ("grid_9_rates", "mdlm_elbo")
    for name in names:
        batches = _batches(held_out, config)
        found[f"nll_nats_per_token_{name}"] = of_estimate(estimate(lm, batches, name, config.seed))
    return found


def _batches(held_out: HeldOut, config: EvaluateConfig) -> Iterator[Batch]:
    for window in held_out.windows(config.batch_sequences, config.estimator_tokens):
        yield window.batch


def _by_document(
    lm: LanguageModel,
    held_out: HeldOut,
    config: EvaluateConfig,
    estimator: Estimator,
    samples: int,
) -> Ledger:
    ledger = Ledger(len(held_out.documents))
    for window in held_out.windows(config.batch_sequences, config.max_tokens):
        document_BT, bytes_BT = window.document_BT, window.bytes_BT
        if estimator == "autoregressive":  # what is counted at a position is the token after it
            document_BT, bytes_BT = np.roll(document_BT, -1, 1), np.roll(bytes_BT, -1, 1)
        for sample in range(samples):
            found = token_nats(lm, window.batch, estimator, config.seed, sample)
            counted_BT = found.counted_BT > 0
            document_N = document_BT[counted_BT.numpy()]
            ledger.add("nats", found.nats_BT[counted_BT], document_N)
            ledger.add("tokens", found.counted_BT[counted_BT], document_N)
            ledger.add("bytes", torch.from_numpy(bytes_BT)[counted_BT], document_N)
    return ledger


def _bytes(ledger: Ledger, held_out: HeldOut, scorer: Scorer, note: str) -> Scores:
    return of_bytes(ledger["nats"], ledger["bytes"], held_out.domain_of_document, scorer, note)


@dataclass(frozen=True)
class _Study:
    """What the concepts of one network turned out to be."""

    scores: Scores
    recognition: Recognition
    cards: list[Card]
    alignment: Alignment
    active_K: Floats


def _concepts(
    lm: LanguageModel,
    checkpoint: Path,
    held_out: HeldOut,
    reading: Reading,
    config: EvaluateConfig,
    scorer: Scorer,
) -> _Study:
    """Concept loss, recognition, independence and alignment.

    The headline AUROC reads chunks half masked, by the OR over masked tokens: the only tokens
    whose concepts were trained. The reading of whole chunks stands beside it.
    """
    measured_S = held_out.supervised() & (reading.asked_S > 0)
    label_SK = held_out.labels(lm.concepts.config.n_known)[measured_S]
    document_S = held_out.document_of_chunk[measured_S.numpy()]
    absence_SK = reading.absence_SK[measured_S]
    clean_SK = read_clean(lm, held_out, config)[measured_S]
    masked, clean = (
        recognise(
            presence(each_SK).numpy(),
            label_SK.numpy(),
            document_S,
            min_positives=config.min_positives,
            draws=config.bootstrap_draws,
            seed=config.seed,
        )
        for each_SK in (absence_SK, clean_SK)
    )
    cards = cards_of(lm, checkpoint, config.alignment_concepts, n_tokens=config.alignment_tokens)
    embedder = embedding.load(config.embedder)
    aligned = judge(cards, embedder.embed)
    return _Study(
        scores=of_concepts(absence_SK, label_SK, document_S, scorer)
        | of_recognition(masked, "", "half masked, OR over masked tokens")
        | of_recognition(clean, "_clean", "nothing masked, OR over all tokens")
        | of_dependence(reading, scorer)
        | of_alignment(aligned, config.embedder, scorer),
        recognition=masked,
        cards=cards,
        alignment=aligned,
        active_K=presence(absence_SK).amax(dim=0).double().numpy(),
    )


def _write_concepts(study: _Study, path: Path) -> None:
    """One row a judged concept; recognition is blank where there were too few positives."""
    found = study.recognition
    place_of = {concept: place for place, concept in enumerate(found.concept_L.tolist())}
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            [
                "concept_id", "name", "n_positives", "auroc", "average_precision",
                "highest_probability", "alignment_cosine", "alignment_auroc", "top_tokens",
            ]
        )  # fmt: skip
        for row, card in enumerate(study.cards):
            place = place_of.get(card.concept_id)
            recognised = ["", "", ""] if place is None else [
                str(found.n_positives_L[place]), f"{found.auroc_L[place]:.6f}",
                f"{found.average_precision_L[place]:.6f}",
            ]  # fmt: skip
            writer.writerow(
                [
                    card.concept_id, card.name, *recognised,
                    f"{study.active_K[card.concept_id]:.6f}",
                    f"{study.alignment.cosine_K[row]:.6f}",
                    f"{study.alignment.auroc_K[row]:.6f}", card.tokens,
                ]
            )  # fmt: skip
