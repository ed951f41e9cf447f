"""How well an annotator's scores put the concepts that chunks carry before the others.

    of a chunk      average precision over concepts, precision at 1, recall at 5 and at 16
    of a concept    AUC and average precision over chunks; macro is the mean over concepts
    of all pairs    micro AUC, by how far scores lie above their concept's threshold

Every figure has a 95% bootstrap interval that draws whole documents. Scores are made a tile at a
time; for micro AUC pairs are counted in bins of 1/32 standard deviation, ties counting half.

Shape suffixes: H held-out chunks   K concepts   L concepts that have figures   T one tile
    G documents   B bins   W weightings (bootstrap draws)   F figures
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from components.annotators import Calibration, Floats, Integers, Scorer, sigmoid, tiles
from model.intervals import Interval, by_group, intervals, ratio_interval
from model.ranking import rank

_Doubles = NDArray[np.float64]
_BINS = 512
_REACH = 8.0
"""Standard deviations from the threshold beyond which pairs share a bin."""

_PROBABILITY_BINS = 15
MEAN_AVERAGE_PRECISION = "mean_average_precision"
CHOSEN_BY = f"{MEAN_AVERAGE_PRECISION} on held-out tagged chunks"


@dataclass(frozen=True)
class Figure:
    """A number, its 95% interval, and how many of what it rests on."""

    value: float
    low: float
    high: float
    n: int
    n_of: str


@dataclass(frozen=True)
class Held:
    """Chunks that nothing was fitted to, with the concepts they carry and their documents."""

    vectors_HD: Floats
    labels_HK: csr_array
    document_H: Integers
    """0 … G−1"""

    @property
    def n_documents(self) -> int:
        return int(self.document_H.max()) + 1


@dataclass(frozen=True)
class Judged:
    """An annotator's scores of held-out chunks; `slope` and `shift` make a distance a log-odds."""

    scorer: Scorer
    calibration: Calibration
    slope: float = 1.0
    shift: float = 0.0

    def tiles(self, held: Held) -> Iterator[tuple[slice, Floats, Floats]]:
        """Rows, distances above thresholds (T × K) and labels (T × K)."""
        for rows in tiles(len(held.vectors_HD), self.scorer.n_concepts):
            scores_TK = self.scorer.scores(held.vectors_HD[rows])
            labels_TK = np.asarray(held.labels_HK[rows].toarray(), dtype=np.float32)
            yield rows, self.calibration.distance(scores_TK), labels_TK


class ByChunk(NamedTuple):
    """Of each chunk that has labels."""

    average_precision_H: _Doubles
    precision_at_1_H: _Doubles
    recall_at_5_H: _Doubles
    recall_at_16_H: _Doubles


def by_chunk(judged: Judged, held: Held, draws: int, seed: int) -> dict[str, Figure]:
    """Means over chunks that have labels."""
    parts = [_of_chunks(distance, labels) for _, distance, labels in judged.tiles(held)]
    found = ByChunk(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    there_H = np.diff(held.labels_HK.indptr) > 0
    names = (MEAN_AVERAGE_PRECISION, "precision_at_1", "recall_at_5", "recall_at_16")
    count_G = by_group(there_H.astype(np.float64), held.document_H, held.n_documents)
    figures = {}
    for name, value_H in zip(names, found, strict=True):
        sum_G = by_group(np.where(there_H, value_H, 0.0), held.document_H, held.n_documents)
        interval = ratio_interval(sum_G, count_G, draws=draws, seed=seed)
        figures[name] = _figure(interval, int(there_H.sum()), "chunks")
    return figures


@dataclass(frozen=True)
class ByConcept:
    """Concepts that some held-out chunks carry and some do not, with their figures."""

    concept_L: Integers
    auc_L: list[Figure]
    average_precision_L: list[Figure]
    macro: dict[str, Figure]


def by_concept(judged: Judged, held: Held, draws: int, seed: int) -> ByConcept:
    """AUC and average precision of each concept over chunks, and their means over concepts."""
    n_positives_K = np.bincount(held.labels_HK.indices, minlength=judged.scorer.n_concepts)
    concept_L = np.flatnonzero((n_positives_K > 0) & (n_positives_K < len(held.vectors_HD)))
    if not len(concept_L):
        raise ValueError(
            f"no concept is carried by some of the {len(held.vectors_HD)} texts that are tested on "
            f"and not by others; bring more texts"
        )
    labels_KH = held.labels_HK.T.tocsr()

    def both(weight_WG: _Doubles) -> _Doubles:
        """Macro figures, then those of each concept: AUC, then average precision (W × F)."""
        weight_HW = np.ascontiguousarray(weight_WG[:, held.document_H].T, dtype=np.float32)
        columns = []
        for concepts in tiles(judged.scorer.n_concepts, len(held.vectors_HD)):
            scores_HT = judged.scorer.scores(held.vectors_HD, concepts)
            for concept in concept_L[(concept_L >= concepts.start) & (concept_L < concepts.stop)]:
                positive_H = labels_KH[[concept]].toarray()[0] > 0
                ranking = rank(scores_HT[:, concept - concepts.start], positive_H, weight_HW)
                columns.append((ranking.auroc_W, ranking.average_precision_W))
        each_W2L = np.array(columns).transpose(2, 1, 0)
        return np.concatenate([_mean_of_finite(each_W2L), each_W2L.reshape(len(each_W2L), -1)], 1)

    per_document = max(1, len(held.vectors_HD) // held.n_documents)
    found = intervals(both, held.n_documents, draws=draws, seed=seed, cells_per_group=per_document)
    n_L = n_positives_K[concept_L].tolist()
    each = [_figure(one, n, "chunks") for one, n in zip(found[2:], [*n_L, *n_L], strict=True)]
    names = ("macro_auc", "macro_average_precision")
    macro = {
        name: _figure(one, len(concept_L), "concepts")
        for name, one in zip(names, found[:2], strict=True)
    }
    return ByConcept(concept_L.astype(np.int64), each[: len(n_L)], each[len(n_L) :], macro)


def of_pairs(judged: Judged, held: Held, draws: int, seed: int) -> dict[str, Figure]:
    """Micro AUC and the calibration error of the probabilities, over chunks × concepts."""
    n_G = held.n_documents
    counts_GB2 = np.zeros((n_G, _BINS, 2), dtype=np.float32)
    said_GB3 = np.zeros((n_G, _PROBABILITY_BINS, 3))
    for rows, distance_TK, labels_TK in judged.tiles(held):
        document_TK = np.broadcast_to(held.document_H[rows, None], labels_TK.shape)
        within_TK = (np.clip(distance_TK / _REACH, -1, 1) + 1) / 2 * (_BINS - 1)
        place = (document_TK, np.round(within_TK).astype(np.int64), (labels_TK > 0).astype(int))
        np.add.at(counts_GB2, place, 1.0)
        probability_TK = sigmoid(judged.slope * distance_TK + judged.shift)
        bin_TK = np.minimum((probability_TK * _PROBABILITY_BINS).astype(int), _PROBABILITY_BINS - 1)
        for column, value in enumerate((np.ones_like(labels_TK), probability_TK, labels_TK)):
            np.add.at(said_GB3[:, :, column], (document_TK, bin_TK), value)

    def both(weight_WG: _Doubles) -> _Doubles:
        with_label_WB, without_WB = weight_WG @ counts_GB2[:, :, 1], weight_WG @ counts_GB2[:, :, 0]
        below_WB = np.cumsum(without_WB, axis=1) - without_WB / 2
        n_pairs_W = with_label_WB.sum(axis=1) * without_WB.sum(axis=1)
        with np.errstate(invalid="ignore"):
            auc_W = (with_label_WB * below_WB).sum(axis=1) / n_pairs_W
        n_WB, said_WB, true_WB = (weight_WG @ said_GB3[:, :, column] for column in range(3))
        error_W = np.abs(said_WB - true_WB).sum(axis=1) / n_WB.sum(axis=1)
        return np.stack([auc_W, error_W], axis=1)

    auc, error = intervals(both, n_G, draws=draws, seed=seed, cells_per_group=4)
    n_pairs = len(held.vectors_HD) * judged.scorer.n_concepts
    return {
        "micro_auc": _figure(auc, n_pairs, "pairs of chunk and concept"),
        "calibration_error": _figure(error, n_pairs, "pairs of chunk and concept"),
    }


def told(figures: dict[str, Figure]) -> dict[str, dict[str, object]]:
    """Figures as JSON has them."""
    return {name: asdict(one) for name, one in figures.items()}


def _of_chunks(distance_TK: Floats, labels_TK: Floats) -> ByChunk:
    order_TK = np.argsort(-distance_TK, axis=1, kind="stable")
    hits_TK = np.take_along_axis(labels_TK, order_TK, axis=1).astype(np.float64)
    n_T = np.maximum(hits_TK.sum(axis=1), 1.0)
    precision_TK = np.cumsum(hits_TK, axis=1) / np.arange(1, hits_TK.shape[1] + 1)
    return ByChunk(
        average_precision_H=(precision_TK * hits_TK).sum(axis=1) / n_T,
        precision_at_1_H=hits_TK[:, 0],
        recall_at_5_H=hits_TK[:, :5].sum(axis=1) / n_T,
        recall_at_16_H=hits_TK[:, :16].sum(axis=1) / n_T,
    )


def _mean_of_finite(value_W2L: _Doubles) -> _Doubles:
    """A draw that left a concept no positive chunk has the mean of the others."""
    there_W2L = np.isfinite(value_W2L)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(there_W2L, value_W2L, 0.0).sum(-1) / there_W2L.sum(-1))


def _figure(found: Interval, n: int, n_of: str) -> Figure:
    return Figure(found.value, max(0.0, found.low), min(1.0, found.high), n, n_of)
