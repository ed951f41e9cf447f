"""Labelling against encoding alone: MiniLM in float32 through sentence-transformers, one thread.

    python -m benchmarks.labelling GOLD.parquet sentence-transformers/all-MiniLM-L6-v2

GOLD has the columns `text` and `labels` (a list a row); MiniLM may be a path instead.

Half of the texts teach the static encoder (by vectors, not labels) and both encoders' heads; the
other half tests: 1,500 vectors teach less than 3,500 do. On 7,000 texts it takes some six minutes
of the processor, nearly all of it MiniLM's. Ours is the whole of labelling: tokenising, vectors,
scores, thresholds, cap.

Shape suffixes: N texts   K labels   D vector width
"""

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits

from benchmarks.measure import race
from components import embedding
from components.annotators import Annotator, Calibration, Linear
from components.atlas.distilling import DistilConfig, learned
from components.embedding import MINILM, Embedder, Floats, MiniLM, SentenceTransformerEmbedder
from components.static_encoder import StaticEncoder

N_TEXTS, N_TIMED, REPEATS = 8_000, 64, 3
TRUNCATIONS = (64,)
TARGET = 10.0
_RIDGE = 0.03


@dataclass(frozen=True)
class Gold:
    """Texts and what people labelled them with; even rows teach, odd rows test."""

    texts: list[str]
    labels_NK: NDArray[np.float32]
    names: list[str]

    @property
    def taught(self) -> list[str]:
        return self.texts[0::2]

    @property
    def tested(self) -> list[str]:
        return self.texts[1::2]


def report(gold: Gold, vectors_ND: Floats, float32_name: str) -> list[str]:
    """Chunks a second and macro AUC; `vectors_ND` are MiniLM's in 8 bits, 0.9996 from float32's."""
    taught_by = embedding.load(MINILM, n_workers=1)
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        static = learned(
            gold.taught, vectors_ND[0::2], MINILM, Path(folder), DistilConfig(every_held_out=20)
        )
        seconds = time.process_time() - began
        float32 = SentenceTransformerEmbedder(float32_name)
        label = _labeller(static, gold)
        timed = gold.tested[:N_TIMED]
        contest = race(
            "labelling, against float32 MiniLM's encoding", lambda: float32.embed(timed),
            lambda: label(timed), "", REPEATS, target=TARGET,
        )  # fmt: skip
        teacher, ours = (
            _quality(vectors, gold, cards)
            for vectors, cards in (
                (vectors_ND, taught_by.embed(gold.names)),
                (static.embed(gold.texts), static.embed(gold.names)),
            )
        )
        lines = [
            f"{contest}",
            f"  chunks/s: float32 {N_TIMED / contest.reference_seconds:.1f}, "
            f"labelling {N_TIMED / contest.seconds:,.0f}",
            f"  macro AUC, trained head: MiniLM {teacher[0]:.4f}, static {ours[0]:.4f} "
            f"({ours[0] - teacher[0]:+.4f})",
            f"  macro AUC, names alone:  MiniLM {teacher[1]:.4f}, static {ours[1]:.4f} "
            f"({ours[1] - teacher[1]:+.4f})   n={len(gold.tested)}, {len(gold.names)} labels",
            f"  learned in {seconds:.1f} s of the processor from {len(gold.taught):,} vectors",
        ]
        return lines + _choices(gold, static)


def _choices(gold: Gold, static: StaticEncoder) -> list[str]:
    """What else might make encoding faster."""
    timed, int8 = gold.tested[:N_TIMED], MiniLM(n_workers=1)
    ways: dict[str, Callable[[Sequence[str]], object]] = {
        "int8, text by text": lambda texts: [int8.embed([text]) for text in texts],
        "int8, by 32 in the order given": lambda texts: [
            _padded(int8, texts[first : first + 32]) for first in range(0, len(texts), 32)
        ],
        "int8, batches of like length": int8.embed,
        "static": static.embed,
    }
    rates = [f"  {name:<40} {_rate(way, timed):8,.1f} chunks/s" for name, way in ways.items()]
    for n_pieces in TRUNCATIONS:
        short = MiniLM(n_workers=1, max_wordpieces=n_pieces)
        cut_ND = short.embed(gold.texts)
        found = _quality(cut_ND, gold, short.embed(gold.names))
        rates.append(
            f"  {f'int8, cut at {n_pieces} pieces':<40} {_rate(short.embed, timed):8,.1f} chunks/s"
            f"   macro AUC {found[0]:.4f} trained, {found[1]:.4f} by names"
        )
    n = len(gold.texts)
    return [
        *rates,
        f"  texts said before: {n - len(set(gold.texts))} of {n:,} (what a cache saves)",
    ]


def _rate(way: Callable[[Sequence[str]], object], texts: Sequence[str]) -> float:
    best = float("inf")
    for _ in range(REPEATS):
        began = time.process_time()
        way(texts)
        best = min(best, time.process_time() - began)
    return len(texts) / best


def _padded(int8: MiniLM, texts: Sequence[str]) -> Floats:
    """One batch, as long as its longest text."""
    return int8._encode([each.ids for each in int8._tokenizer.encode_batch(list(texts))])


def _labeller(encoder: Embedder, gold: Gold) -> Callable[[Sequence[str]], object]:
    """Text to labels, with the head and the thresholds that the taught half gives."""
    vectors_ND = encoder.embed(gold.taught)
    head = _head(vectors_ND, gold.labels_NK[0::2])
    prevalence_K = np.clip(gold.labels_NK[0::2].mean(axis=0), 1e-4, 0.5).astype(np.float32)
    calibration = Calibration.to_prevalence(head.scores(vectors_ND), prevalence_K)
    annotator = Annotator(head, calibration, max_labels=16)
    return lambda texts: annotator.label(encoder.embed(texts))


def _quality(vectors_ND: Floats, gold: Gold, cards_KD: Floats) -> tuple[float, float]:
    """Macro AUC on the tested half: of a head that the other half taught, and of the names."""
    tested_ND, labels_NK = vectors_ND[1::2], gold.labels_NK[1::2]
    head = _head(vectors_ND[0::2], gold.labels_NK[0::2])
    return macro_auc(head.scores(tested_ND), labels_NK), macro_auc(
        tested_ND @ cards_KD.T, labels_NK
    )


def _head(vectors_ND: Floats, labels_NK: Floats) -> Linear:
    """Ridge regression of the labels."""
    mean_D = vectors_ND.mean(axis=0)
    centred_ND = vectors_ND - mean_D
    width = vectors_ND.shape[1]
    gram_DD = centred_ND.T @ centred_ND + _RIDGE * len(vectors_ND) / width * np.eye(width)
    weight_DK = np.linalg.solve(gram_DD, centred_ND.T @ labels_NK).astype(np.float32)
    return Linear(np.ascontiguousarray(weight_DK.T), np.asarray(-mean_D @ weight_DK, np.float32))


def macro_auc(scores_NK: Floats, labels_NK: Floats) -> float:
    """The mean over labels of the chance that a text with it is scored above one without."""
    n = len(labels_NK)
    held_K = labels_NK.sum(axis=0)
    there_K = (held_K > 0) & (held_K < n)
    rank_sum_K = (rankdata(scores_NK, axis=0) * labels_NK).sum(axis=0)
    pairs_K = np.maximum(held_K * (n - held_K), 1)
    return float(((rank_sum_K - held_K * (held_K + 1) / 2) / pairs_K)[there_K].mean())


def read(path: Path) -> Gold:
    """At most `N_TEXTS` texts, evenly spaced."""
    table = pq.read_table(path, columns=["text", "labels"])
    rows = np.unique(np.linspace(0, table.num_rows - 1, min(N_TEXTS, table.num_rows)).astype(int))
    taken = table.take(rows)
    labels = taken.column("labels").to_pylist()
    names = sorted({name for each in labels for name in each})
    row_of = {name: row for row, name in enumerate(names)}
    labels_NK = np.zeros((len(labels), len(names)), dtype=np.float32)
    for row, each in enumerate(labels):
        labels_NK[row, [row_of[name] for name in each]] = 1.0
    return Gold(taken.column("text").to_pylist(), labels_NK, [_said(name) for name in names])


def _said(name: str) -> str:
    """`works-with::image` as a person would say it."""
    facet, _, value = name.rpartition("::")
    spoken = value.replace("-", " ")
    return f"{spoken} ({facet.replace('-', ' ')})" if facet else spoken


if __name__ == "__main__":
    torch.set_num_threads(1)
    with threadpool_limits(1):
        read_gold = read(Path(sys.argv[1]))
        encoded = embedding.load(MINILM, n_workers=1).embed(read_gold.texts)
        print("\n".join(report(read_gold, encoded, sys.argv[2])))
