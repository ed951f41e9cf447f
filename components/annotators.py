"""Annotators: which concepts a chunk carries, from its vector (paper §4, stage three).

    cards       cosine with the embedded concept card (name and description)
    neighbours  similarity-weighted vote of the nearest tagged chunks
    trained     one direction a concept, under the non-negative positive-unlabelled risk

All three give a score per chunk and concept. A concept's threshold is the quantile of its scores
over held-out chunks that gives it its calibrated prevalence; the distance to it, in standard
deviations and through a sigmoid, is the label's score: 0.5 means "just enough" for every concept.

Scores are made a tile of chunks × concepts at a time: no table of both is ever whole.

Shape suffixes: N chunks   P tagged chunks   K concepts   D vector width   L labels found
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from scipy.sparse import csr_array

from components import contracts, nearest

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
Kind = Literal["cards", "neighbours", "trained"]
HEAD_FILE, FACTS_FILE, ENCODER_FOLDER = "head.safetensors", "annotator.json", "encoder"

CELLS = 1 << 22
"""Scores held at once: 16 MiB of float32."""

_ALL = slice(None)
_EXACT_UP_TO = 200_000
_LEAST_RECALL = 0.95


class Scorer(Protocol):
    """Scores chunks against every concept; higher means more likely, the scale is its own."""

    @property
    def n_concepts(self) -> int: ...

    def scores(self, vectors_ND: Floats, concepts: slice = _ALL) -> Floats:
        """(N, K) scores, of these concepts only."""
        ...

    def tensors(self) -> dict[str, NDArray[Any]]:
        """What `head.safetensors` holds of it."""
        ...


@dataclass(frozen=True)
class Linear:
    """Dot product with one direction a concept: cards and the trained head."""

    weight_KD: Floats
    bias_K: Floats

    @property
    def n_concepts(self) -> int:
        return len(self.bias_K)

    def scores(self, vectors_ND: Floats, concepts: slice = _ALL) -> Floats:
        weight_KD, bias_K = self.weight_KD[concepts], self.bias_K[concepts]
        return np.asarray(vectors_ND @ weight_KD.T + bias_K, dtype=np.float32)

    def tensors(self) -> dict[str, NDArray[Any]]:
        return {"weight_KD": self.weight_KD, "bias_K": self.bias_K}


@dataclass(frozen=True)
class Neighbours:
    """Share of similarity, among the nearest tagged chunks, that carries the concept."""

    tagged_PD: Floats
    labels_PK: csr_array
    n_neighbours: int = 32

    @property
    def n_concepts(self) -> int:
        return int(self.labels_PK.shape[1])

    def scores(self, vectors_ND: Floats, concepts: slice = _ALL) -> Floats:
        k = min(self.n_neighbours, len(self.tagged_PD))
        found = self._index.search(vectors_ND, k)
        there_NK = found.rows_QK >= 0
        weight_NK = np.where(there_NK, np.maximum(found.cosine_QK, 0.0), 0.0)
        starts = np.arange(0, weight_NK.size + 1, k)
        rows = np.where(there_NK, found.rows_QK, 0)
        votes_NP = csr_array(
            (weight_NK.ravel(), rows.ravel(), starts), shape=(len(vectors_ND), len(self.tagged_PD))
        )
        total_N1 = np.maximum(weight_NK.sum(axis=1, keepdims=True), 1e-8)
        voted_NK = (votes_NP @ self.labels_PK[:, concepts]).toarray()
        return np.asarray(voted_NK / total_N1, dtype=np.float32)

    @cached_property
    def _index(self) -> nearest.VectorIndex:
        return nearest.build(self.tagged_PD, _EXACT_UP_TO, _LEAST_RECALL, seed=0)

    def tensors(self) -> dict[str, NDArray[Any]]:
        return {
            "tagged_PD": self.tagged_PD,
            "labels_starts": self.labels_PK.indptr.astype(np.int64),
            "labels_concepts": self.labels_PK.indices.astype(np.int64),
        }


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
        # Down the ordered column: the same sum, whatever order the chunks came in.
        spread_K = np.maximum(ordered_NK.std(axis=0, dtype=np.float64), 1e-6)
        return Calibration(threshold_K.astype(np.float32), spread_K.astype(np.float32))

    @staticmethod
    def of(scorer: Scorer, vectors_ND: Floats, prevalence_K: Floats) -> "Calibration":
        """The same from a scorer, for a tile of concepts at a time."""
        if not len(vectors_ND):
            raise ValueError(
                "thresholds are calibrated on chunks, and there are none; embed text first"
            )
        parts = [
            Calibration.to_prevalence(scorer.scores(vectors_ND, tile), prevalence_K[tile])
            for tile in tiles(scorer.n_concepts, len(vectors_ND))
        ]
        return Calibration(
            np.concatenate([part.threshold_K for part in parts]),
            np.concatenate([part.spread_K for part in parts]),
        )

    @staticmethod
    def of_equal_shares(scorer: Scorer, vectors_ND: Floats, share: float) -> "Calibration":
        """For concepts whose prevalence nobody knows: as many deviations above the mean for each.

        Were scores normal, every concept would label this share of the chunks.
        """
        above = NormalDist().inv_cdf(1.0 - share)
        parts = []
        for tile in tiles(scorer.n_concepts, len(vectors_ND)):
            scores_NK = scorer.scores(vectors_ND, tile).astype(np.float64)
            spread_K = np.maximum(scores_NK.std(axis=0), 1e-6)
            parts.append((scores_NK.mean(axis=0) + above * spread_K, spread_K))
        threshold, spread = (np.concatenate(column) for column in zip(*parts, strict=True))
        return Calibration(threshold.astype(np.float32), spread.astype(np.float32))

    def distance(self, scores_NK: Floats) -> Floats:
        """How far scores lie above the threshold, in standard deviations."""
        return np.asarray((scores_NK - self.threshold_K) / self.spread_K, dtype=np.float32)

    def probability(self, scores_NK: Floats) -> Floats:
        """Scores in [0, 1], 0.5 at the threshold."""
        return sigmoid(self.distance(scores_NK))


@dataclass(frozen=True)
class Found:
    """Labels of some chunks: by chunk, best first."""

    row_L: Integers
    concept_L: Integers
    score_L: Floats


@dataclass(frozen=True)
class Annotator:
    """A scorer with its calibration: what `annotate` runs over a corpus."""

    scorer: Scorer
    calibration: Calibration
    max_labels: int
    encoder: str | Path = ""
    """What makes the vectors that it takes: a name, or the folder of one that was fine-tuned."""

    def find(self, vectors_ND: Floats) -> Found:
        """Concepts above their thresholds, at most the cap; a chunk without one has its nearest."""
        parts = [
            self._found(vectors_ND[tile], tile.start)
            for tile in tiles(len(vectors_ND), self.scorer.n_concepts)
        ]
        if not parts:
            nothing = np.zeros(0, dtype=np.int64)
            return Found(nothing, nothing, np.zeros(0, dtype=np.float32))
        return Found(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def label(self, vectors_ND: Floats) -> list[list[tuple[int, float]]]:
        """Concept ids with scores for every chunk, best first: at least one, at most the cap."""
        labels: list[list[tuple[int, float]]] = [[] for _ in vectors_ND]
        found = self.find(vectors_ND)
        columns = (found.row_L.tolist(), found.concept_L.tolist(), found.score_L.tolist())
        for row, concept, score in zip(*columns, strict=True):
            labels[row].append((concept, score))
        return labels

    def _found(self, vectors_ND: Floats, first: int) -> tuple[Integers, Integers, Floats]:
        distance_NK = self.calibration.distance(self.scorer.scores(vectors_ND))
        above_NK = distance_NK >= 0.0
        without_N = ~above_NK.any(axis=1)
        above_NK[without_N, distance_NK[without_N].argmax(axis=1)] = True
        row_L, concept_L = np.nonzero(above_NK)
        distance_L = distance_NK[row_L, concept_L]
        order_L = np.lexsort((concept_L, -distance_L, row_L))
        row_L, concept_L, distance_L = row_L[order_L], concept_L[order_L], distance_L[order_L]
        place_L = np.arange(len(row_L)) - np.searchsorted(row_L, row_L)
        kept_L = place_L < self.max_labels
        return row_L[kept_L] + first, concept_L[kept_L], sigmoid(distance_L[kept_L])


def save(annotator: Annotator, folder: Path, kind: Kind, facts: dict[str, object]) -> None:
    """Write head and facts into `folder` and seal it, with the encoder in it, as Annotator@1."""
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
    calibration = Calibration(tensors["threshold_K"], tensors["spread_K"])
    scorer: Scorer
    if facts["kind"] == "neighbours":
        tagged_PD, concepts = tensors["tagged_PD"], tensors["labels_concepts"]
        labels_PK = csr_array(
            (np.ones(len(concepts), dtype=np.float32), concepts, tensors["labels_starts"]),
            shape=(len(tagged_PD), len(calibration.threshold_K)),
        )
        scorer = Neighbours(tagged_PD, labels_PK, int(str(facts["n_neighbours"])))
    else:
        scorer = Linear(tensors["weight_KD"], tensors["bias_K"])
    fine_tuned = folder / ENCODER_FOLDER
    encoder = fine_tuned if fine_tuned.is_dir() else str(facts["encoder"])
    return Annotator(scorer, calibration, int(str(facts["max_labels"])), encoder)


def tiles(n: int, n_across: int) -> Iterator[slice]:
    """Slices of 0 … n−1 that, with everything across, stay under `CELLS`."""
    at_once = max(1, CELLS // max(1, n_across))
    for first in range(0, n, at_once):
        yield slice(first, min(n, first + at_once))


def sigmoid(values: Floats) -> Floats:
    """1 / (1 + e^−x), for values of any size."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(values, -30, 30))), dtype=np.float32)
