"""Annotators: which concepts a chunk carries, from its vector (paper §4, stage three).

    cards       cosine with the embedded concept card (name and description)
    neighbours  similarity-weighted vote of the nearest tagged chunks
    trained     linear, started at the cards, under the non-negative positive-unlabelled risk

All three give a score per chunk and concept. A concept's threshold is the quantile of its scores
over the corpus that gives it its calibrated prevalence; the distance to it, in standard deviations
and through a sigmoid, is the label's score: 0.5 means "just enough" for every concept alike.

Shape suffixes: N chunks   P tagged chunks   K concepts   D vector width
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from components import contracts

Floats = NDArray[np.float32]
Kind = Literal["cards", "neighbours", "trained"]
HEAD_FILE, FACTS_FILE = "head.safetensors", "annotator.json"


class Scorer(Protocol):
    """Scores chunks against every concept; higher means more likely, the scale is its own."""

    def scores(self, vectors_ND: Floats) -> Floats:
        """(N, K) scores."""
        ...

    def tensors(self) -> dict[str, Floats]:
        """What `head.safetensors` holds of it."""
        ...


@dataclass(frozen=True)
class Linear:
    """Dot product with one direction a concept: cards and the trained head."""

    weight_KD: Floats
    bias_K: Floats

    def scores(self, vectors_ND: Floats) -> Floats:
        return np.asarray(vectors_ND @ self.weight_KD.T + self.bias_K, dtype=np.float32)

    def tensors(self) -> dict[str, Floats]:
        return {"weight_KD": self.weight_KD, "bias_K": self.bias_K}


@dataclass(frozen=True)
class Neighbours:
    """Share of similarity, among the nearest tagged chunks, that carries the concept."""

    tagged_PD: Floats
    labels_PK: Floats
    n_neighbours: int = field(default=32)

    def scores(self, vectors_ND: Floats) -> Floats:
        similarity_NP = np.maximum(vectors_ND @ self.tagged_PD.T, 0.0)
        k = min(self.n_neighbours, len(self.tagged_PD))
        least_N1 = np.partition(similarity_NP, -k, axis=1)[:, -k, None]
        weight_NP = np.where(similarity_NP >= least_N1, similarity_NP, 0.0)
        total_N1 = np.maximum(weight_NP.sum(axis=1, keepdims=True), 1e-8)
        return np.asarray(weight_NP @ self.labels_PK / total_N1, dtype=np.float32)

    def tensors(self) -> dict[str, Floats]:
        return {"tagged_PD": self.tagged_PD, "labels_PK": self.labels_PK}


@dataclass(frozen=True)
class Calibration:
    """Where each concept's scores begin to count, and how wide they spread."""

    threshold_K: Floats
    spread_K: Floats

    @staticmethod
    def to_prevalence(scores_NK: Floats, prevalence_K: Floats) -> "Calibration":
        """Thresholds at which each concept labels its prevalence of these chunks."""
        ordered_NK = np.sort(scores_NK, axis=0)
        n = len(ordered_NK)
        rows_K = np.clip(np.floor(n * (1.0 - prevalence_K)).astype(int), 0, n - 1)
        threshold_K = ordered_NK[rows_K, np.arange(ordered_NK.shape[1])]
        spread_K = np.maximum(scores_NK.std(axis=0), 1e-6)
        return Calibration(threshold_K.astype(np.float32), spread_K.astype(np.float32))

    def probability(self, scores_NK: Floats) -> Floats:
        """Scores in [0, 1], 0.5 at the threshold."""
        distance_NK = (scores_NK - self.threshold_K) / self.spread_K
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(distance_NK, -30, 30))), dtype=np.float32)


@dataclass(frozen=True)
class Annotator:
    """A scorer with its calibration: what `annotate` runs over a corpus."""

    scorer: Scorer
    calibration: Calibration
    max_labels: int

    def label(self, vectors_ND: Floats) -> list[list[tuple[int, float]]]:
        """Concept ids with scores for every chunk, best first: at least one, at most the cap."""
        found_NK = self.calibration.probability(self.scorer.scores(vectors_ND))
        order_NK = np.argsort(-found_NK, axis=1, kind="stable")[:, : self.max_labels]
        labels = []
        for row, concepts in enumerate(order_NK):
            kept = [int(concept) for concept in concepts if found_NK[row, concept] >= 0.5]
            kept = kept or [int(concepts[0])]
            labels.append([(concept, float(found_NK[row, concept])) for concept in kept])
        return labels


def save(annotator: Annotator, folder: Path, kind: Kind, facts: dict[str, object]) -> None:
    """Write head and facts into `folder` and seal it as Annotator@1."""
    tensors = {
        **annotator.scorer.tensors(),
        "threshold_K": annotator.calibration.threshold_K,
        "spread_K": annotator.calibration.spread_K,
    }
    save_file({name: np.ascontiguousarray(t) for name, t in tensors.items()}, folder / HEAD_FILE)
    told = {"kind": kind, "max_labels": annotator.max_labels, **facts}
    (folder / FACTS_FILE).write_text(json.dumps(told, indent=1))
    contracts.seal(folder, contracts.ANNOTATOR)


def load(folder: Path) -> Annotator:
    """The annotator of a verified artifact; it labels as it did when it was saved."""
    contracts.verify(folder, contracts.ANNOTATOR)
    facts = contracts.json_file(folder, FACTS_FILE)
    tensors = load_file(folder / HEAD_FILE)
    scorer: Scorer
    if facts["kind"] == "neighbours":
        scorer = Neighbours(
            tensors["tagged_PD"], tensors["labels_PK"], int(str(facts["n_neighbours"]))
        )
    else:
        scorer = Linear(tensors["weight_KD"], tensors["bias_K"])
    calibration = Calibration(tensors["threshold_K"], tensors["spread_K"])
    return Annotator(scorer, calibration, int(str(facts["max_labels"])))


def average_precision(scores_NK: Floats, labels_NK: Floats) -> list[float]:
    """For each chunk that has labels, how well its concepts stand above the others (0 to 1)."""
    found = []
    for scores_K, labels_K in zip(scores_NK, labels_NK, strict=True):
        hits_K = labels_K[np.argsort(-scores_K, kind="stable")] > 0
        if hits_K.any():
            precision_K = np.cumsum(hits_K) / np.arange(1, len(hits_K) + 1)
            found.append(float(precision_K[hits_K].mean()))
    return found


def recall_at(scores_NK: Floats, labels_NK: Floats, k: int) -> list[float]:
    """For each chunk that has labels, the share of them among its k best-scored concepts."""
    top_NK = np.argsort(-scores_NK, axis=1, kind="stable")[:, :k]
    hits_N = np.take_along_axis(labels_NK, top_NK, axis=1).sum(axis=1)
    counts_N = labels_NK.sum(axis=1)
    return [float(h / c) for h, c in zip(hits_N, counts_N, strict=True) if c > 0]


def mean_of(values: Sequence[float]) -> float:
    """The mean, 0 where there is nothing to average."""
    return float(np.mean(values)) if values else 0.0
