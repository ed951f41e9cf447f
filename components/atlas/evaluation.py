"""Annotators measured on a gold set that people made (paper §4; method §1.4-1.5).

Documents are split by the hash of their names: the first to train on, the others to test on. A
fifth of the first is held back for the choice between the three annotators and for their
probabilities; then all three are fitted to it as well.
Gold labels are taken to be whole, so that the texts to train on are the unlabelled ones as well.
Thresholds are set on the corpus that is to be labelled, as in the pipeline: it may hold the test
texts, whose labels nothing sees.

    scores.json          every figure with its interval and n, by annotator; what was chosen
    concepts.parquet     the figures of every concept, by annotator; concepts.csv is the same table

Shape suffixes: N texts   P texts to train on   C held back   H test texts   M corpus   K concepts
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from components import embedding
from components.annotators import Calibration, Floats, Integers, Kind, Linear
from components.atlas import gold_files, kept, learning, ranked
from components.atlas.gold import place
from components.atlas.gold_config import GoldConfig
from components.atlas.gold_files import GoldError, GoldSet
from components.atlas.heads import Examples
from components.atlas.ranked import ByConcept, Figure, Held, Judged

SCORES_FILE = "scores.json"
_NEWTON_STEPS = 25

Figures = dict[str, Figure]


@dataclass(frozen=True)
class Evaluation:
    """Figures by annotator, and which of them the held-back texts chose."""

    figures: dict[Kind, Figures]
    chosen: Kind
    n_train: int
    n_held_back: int
    n_test: int


def evaluate(
    concepts: Path, documents: Path, gold: Path, out: Path, config: GoldConfig, cache: Path
) -> Evaluation:
    """Measure the annotators; writes into `out`. Raises GoldError before anything is encoded."""
    said = gold_files.read(concepts, documents, gold)
    split = Split.of(said, config)
    corpus = sorted(dict.fromkeys(said.documents), key=place)[: config.learning.n_pool]
    encoder = embedding.load(config.encoder)
    vectors_ND = kept.embed([*said.texts, *corpus], encoder, cache)
    cards_KD = kept.embed(_cards(said, config), encoder, cache)
    texts_ND, corpus_MD = vectors_ND[: len(said.texts)], vectors_ND[len(said.texts) :]
    trained_on = {said.texts[row] for row in (*split.train_P, *split.held_back_C)}
    unseen_MD = corpus_MD[[text not in trained_on for text in corpus]]
    unseen_MD = np.concatenate([unseen_MD, texts_ND[split.test_H]])
    found, chosen = _fitted(said, split, texts_ND, unseen_MD, cards_KD, config)
    held = _held(said, split.test_H, texts_ND)
    figures, tables = {}, []
    for kind, judged in found.items():
        by_concept = ranked.by_concept(judged, held, config.bootstrap_draws, config.seed)
        figures[kind] = {
            **by_concept.macro,
            **ranked.of_pairs(judged, held, config.bootstrap_draws, config.seed),
            **ranked.by_chunk(judged, held, config.bootstrap_draws, config.seed),
        }
        tables.append(_table(kind, judged, by_concept, said, held))
    measured = Evaluation(
        figures,
        chosen,
        len(split.train_P) + len(split.held_back_C),
        len(split.held_back_C),
        len(split.test_H),
    )
    _write(measured, pa.concat_tables(tables), encoder, config, out)
    return measured


@dataclass(frozen=True)
class Split:
    """Rows of the gold texts; texts of one document are never apart."""

    train_P: Integers
    held_back_C: Integers
    test_H: Integers

    @staticmethod
    def of(said: GoldSet, config: GoldConfig) -> "Split":
        """By the documents' order, which a hash of their names gives."""
        n = int(said.document_N.max()) + 1
        by_share = max(2, round(config.train_share * n)) if config.train_share else 0
        n_train = config.n_train or by_share
        if n_train >= n:
            raise GoldError(
                f"{n_train} documents to train on leave none of {n} to test on; train on fewer"
            )
        n_back = max(1, round(config.calibration_share * n_train)) if n_train else 0
        split = Split(
            train_P=np.flatnonzero(said.document_N < n_train - n_back),
            held_back_C=np.flatnonzero(
                (said.document_N >= n_train - n_back) & (said.document_N < n_train)
            ),
            test_H=np.flatnonzero(said.document_N >= n_train),
        )
        for what, rows in (("to train on", split.train_P), ("to test on", split.test_H)):
            if len(rows) and not said.labels_NK[rows].nnz:
                raise GoldError(f"none of the {len(rows)} texts {what} has a label; bring more")
        return split


def probabilities(judged: Judged, held: Held) -> Judged:
    """With the slope and shift that turn distances into log-odds, by maximum likelihood."""
    parts = [(distance.ravel(), labels.ravel()) for _, distance, labels in judged.tiles(held)]
    distance, label = (np.concatenate(column).astype(np.float64) for column in zip(*parts))  # noqa: B905
    design = np.stack([distance, np.ones_like(distance)], axis=1)
    rate = np.clip(label.mean(), 1e-6, 1 - 1e-6)
    weights = np.array([0.0, np.log(rate / (1 - rate))])
    for _ in range(_NEWTON_STEPS):
        said = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        curvature = (design * (said * (1 - said))[:, None]).T @ design + 1e-6 * np.eye(2)
        weights = weights + np.linalg.solve(curvature, design.T @ (label - said))
    return replace(judged, slope=float(weights[0]), shift=float(weights[1]))


def _fitted(
    said: GoldSet, split: Split, texts_ND: Floats, unseen_MD: Floats, cards_KD: Floats,
    config: GoldConfig,
) -> tuple[dict[Kind, Judged], Kind]:  # fmt: skip
    """The annotators, and the best of them on the texts held back, to which all are then fitted.

    Without texts to train on there are the cards alone, and all concepts are equally common.
    """
    if not len(split.train_P):
        share = min(0.5, config.labels_per_text / len(cards_KD))
        scorer = Linear(cards_KD, np.zeros(len(cards_KD), dtype=np.float32))
        calibration = Calibration.of_equal_shares(scorer, unseen_MD, share)
        return {"cards": Judged(scorer, calibration)}, "cards"

    def fitted_to(rows: Integers) -> dict[Kind, Judged]:
        examples = Examples(texts_ND[rows], said.labels_NK[rows], texts_ND[rows])
        return learning.fit(examples, unseen_MD, cards_KD, config.learning)

    back = _held(said, split.held_back_C, texts_ND)
    first = {kind: probabilities(judged, back) for kind, judged in fitted_to(split.train_P).items()}
    precision = {
        kind: ranked.by_chunk(judged, back, config.bootstrap_draws, config.seed)[
            ranked.MEAN_AVERAGE_PRECISION
        ].value
        for kind, judged in first.items()
    }
    whole = fitted_to(np.concatenate([split.train_P, split.held_back_C]))
    found = {
        kind: replace(judged, slope=first[kind].slope, shift=first[kind].shift)
        for kind, judged in whole.items()
    }
    return found, max(precision, key=lambda kind: precision[kind])


def _cards(said: GoldSet, config: GoldConfig) -> list[str]:
    if config.cards == "name":
        return said.names
    return [learning.card(*both) for both in zip(said.names, said.descriptions, strict=True)]


def _held(said: GoldSet, rows: Integers, texts_ND: Floats) -> Held:
    documents = np.unique(said.document_N[rows], return_inverse=True)[1]
    return Held(texts_ND[rows], said.labels_NK[rows], np.asarray(documents, dtype=np.int64))


def _table(kind: Kind, judged: Judged, found: ByConcept, said: GoldSet, held: Held) -> pa.Table:
    """A row a concept; figures are null where all texts carry it or none does."""
    place_of = {int(concept): number for number, concept in enumerate(found.concept_L)}
    columns: dict[str, list[object]] = {
        "annotator": [kind] * len(said.names),
        "concept_id": list(said.concept_ids),
        "name": list(said.names),
        "n_texts": np.bincount(held.labels_HK.indices, minlength=len(said.names)).tolist(),
        "threshold": judged.calibration.threshold_K.tolist(),
    }
    for name, figures in (("auc", found.auc_L), ("average_precision", found.average_precision_L)):
        for part in ("value", "low", "high"):
            column = name if part == "value" else f"{name}_{part}"
            columns[column] = [
                getattr(figures[place_of[k]], part) if k in place_of else None
                for k in range(len(said.names))
            ]
    return pa.table(columns)


def _write(
    measured: Evaluation, table: pa.Table, encoder: embedding.Embedder, config: GoldConfig,
    out: Path,
) -> None:  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, out / "concepts.parquet")
    pa.csv.write_csv(table, out / "concepts.csv")
    told = {
        "chosen": measured.chosen,
        "chosen_by": f"{ranked.MEAN_AVERAGE_PRECISION} on {measured.n_held_back} held-back texts",
        "n_train": measured.n_train,
        "n_held_back": measured.n_held_back,
        "n_test": measured.n_test,
        "encoder": {"name": encoder.name, "digest": encoder.digest},
        "config": config.model_dump(mode="json"),
        "annotators": {kind: ranked.told(found) for kind, found in measured.figures.items()},
    }
    (out / SCORES_FILE).write_text(json.dumps(told, indent=1) + "\n")
