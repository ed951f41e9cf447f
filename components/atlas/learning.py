"""Atlas, stage three: learn an annotator from the tagged sample (paper §4).

Tags are positive-only: a chunk without a concept may still carry it. The trained annotator
therefore minimises the non-negative positive-unlabelled risk of each concept c with prior π_c,

    R_c  =  π_c · E_P[ℓ(f, +1)]  +  max(0, E_U[ℓ(f, −1)] − π_c · E_P[ℓ(f, −1)]),   ℓ logistic,

where U is a fresh draw from the whole corpus at each step.

Shape suffixes: N chunks   P tagged chunks   U unlabelled chunks   K concepts   D vector width
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import normalize, softplus

from components import annotators, contracts, embedding
from components.annotators import Annotator, Calibration, Floats, Kind, Linear, Neighbours, Scorer
from components.atlas.learning_config import LearnConfig


def learn(
    chunks: Path, vectors: Path, tags: Path, concepts: Path, annotator: Path, config: LearnConfig
) -> None:
    """Fit three annotators, keep the best on held-out tagged chunks, refitted on all of them."""
    contracts.verify(chunks, contracts.CHUNKS)
    vectors_ND, encoder = read_vectors(vectors)
    sample = _tagged(tags, concepts)
    cards_KD = _cards(concepts, str(encoder["name"]))
    prevalence_K = _prevalence(sample.labels_PK, config)
    fitted, held_out = sample.split()
    comparison = {
        kind: _evaluation(
            _scorer(kind, fitted, cards_KD, vectors_ND, prevalence_K, config), held_out, vectors_ND
        )
        for kind in _KINDS
    }
    best = max(_KINDS, key=lambda kind: comparison[kind]["mean_average_precision"])
    scorer = _scorer(best, sample, cards_KD, vectors_ND, prevalence_K, config)
    calibration = Calibration.to_prevalence(scorer.scores(vectors_ND), prevalence_K)
    facts: dict[str, object] = {
        "encoder": encoder["name"],
        "encoder_digest": encoder["digest"],
        "library_digest": contracts.json_file(concepts, "library.json")["digest"],
        "n_neighbours": config.n_neighbours,
        "evaluation": {
            "n_tagged_chunks": len(sample.rows_P),
            "n_held_out_chunks": len(held_out.rows_P),
            "chosen_by": "mean_average_precision on held-out tagged chunks; refitted on all",
            "annotators": comparison,
        },
        "thresholds": [round(float(value), 6) for value in calibration.threshold_K],
        "calibrated_prevalence": [round(float(value), 6) for value in prevalence_K],
    }
    annotators.save(Annotator(scorer, calibration, config.max_labels), annotator, best, facts)


def read_vectors(vectors: Path) -> tuple[Floats, dict[str, object]]:
    """Vectors (N, D) of every chunk by id, and which encoder made them."""
    contracts.verify(vectors, contracts.VECTORS)
    stored = np.load(vectors / "vectors.npy").astype(np.float32)
    return stored, contracts.json_file(vectors, "encoder.json")


_KINDS: tuple[Kind, ...] = ("cards", "neighbours", "trained")


@dataclass(frozen=True)
class _Sample:
    """Tagged chunks, as rows of the vectors, and the concepts each was tagged with."""

    rows_P: NDArray[np.int64]
    labels_PK: Floats

    held_out_P: NDArray[np.bool_]
    """Tagged for comparing annotators, by the stage that drew the sample."""

    def split(self) -> tuple["_Sample", "_Sample"]:
        """To fit on, and to compare on."""
        if not self.held_out_P.any() or self.held_out_P.all():
            raise ValueError(
                f"of {len(self.rows_P)} tagged chunks with concepts {self.held_out_P.sum()} are "
                f"held out; annotators need some to learn from and some to be compared on: raise "
                f"n_held_out or n_train where chunks are tagged"
            )
        return self._rows(~self.held_out_P), self._rows(self.held_out_P)

    def _rows(self, kept_P: NDArray[np.bool_]) -> "_Sample":
        return _Sample(self.rows_P[kept_P], self.labels_PK[kept_P], self.held_out_P[kept_P])


def _tagged(tags: Path, concepts: Path) -> _Sample:
    """Concepts of the tagged chunks: a tag stands for the concept whose member it is."""
    library = contracts.read(concepts, contracts.CONCEPTS)
    concept_of = {
        member: int(concept_id)
        for concept_id, members in zip(
            library["concept_id"].to_pylist(), library["members"].to_pylist(), strict=True
        )
        for member in members
    }
    table = contracts.read(tags, contracts.TAGS)
    pairs = [
        (chunk_id, concept_of[tag])
        for chunk_id, tag in zip(
            table["chunk_id"].to_pylist(), table["tag"].to_pylist(), strict=True
        )
        if tag in concept_of
    ]
    rows = sorted({chunk_id for chunk_id, _ in pairs})
    place = {chunk_id: row for row, chunk_id in enumerate(rows)}
    labels_PK = np.zeros((len(rows), library.num_rows), dtype=np.float32)
    for chunk_id, concept_id in pairs:
        labels_PK[place[chunk_id], concept_id] = 1.0
    held_out = set(_as_ints(contracts.json_file(tags, "sample.json")["held_out"]))
    held_out_P = np.asarray([chunk_id in held_out for chunk_id in rows], dtype=np.bool_)
    return _Sample(np.asarray(rows, dtype=np.int64), labels_PK, held_out_P)


def _as_ints(listed: object) -> list[int]:
    """A JSON list of whole numbers."""
    assert isinstance(listed, list), f"a list of chunk ids, not {listed!r}"
    return [int(item) for item in listed]


def _cards(concepts: Path, encoder: str) -> Floats:
    """Unit vectors of the concept cards, in the space of the chunks."""
    library = contracts.read(concepts, contracts.CONCEPTS)
    texts = [
        f"{name}. {description}"
        for name, description in zip(
            library["name"].to_pylist(), library["description"].to_pylist(), strict=True
        )
    ]
    return embedding.load(encoder).embed(texts)


def _prevalence(labels_PK: Floats, config: LearnConfig) -> Floats:
    observed_K = labels_PK.mean(axis=0) * config.under_reported
    return np.clip(observed_K, config.min_prevalence, config.max_prevalence).astype(np.float32)


def _scorer(
    kind: Kind, sample: _Sample, cards_KD: Floats, vectors_ND: Floats, prevalence_K: Floats,
    config: LearnConfig,
) -> Scorer:  # fmt: skip
    if kind == "cards":
        return Linear(cards_KD, np.zeros(len(cards_KD), dtype=np.float32))
    if kind == "neighbours":
        return Neighbours(vectors_ND[sample.rows_P], sample.labels_PK, config.n_neighbours)
    return _train(sample, cards_KD, vectors_ND, prevalence_K, config)


def _train(
    sample: _Sample, cards_KD: Floats, vectors_ND: Floats, prevalence_K: Floats,
    config: LearnConfig,
) -> Linear:  # fmt: skip
    """The head that minimises the positive-unlabelled risk, near the cards it started from."""
    corpus_ND = torch.from_numpy(vectors_ND)
    tagged_PD = corpus_ND[torch.from_numpy(sample.rows_P)]
    labels_PK = torch.from_numpy(sample.labels_PK)
    card_KD = normalize(torch.from_numpy(cards_KD), dim=1)
    prior_K = torch.from_numpy(prevalence_K)
    offset_KD = torch.zeros_like(card_KD, requires_grad=True)
    bias_K = torch.logit(prior_K).requires_grad_()
    scale_K = torch.full_like(prior_K, 8.0).requires_grad_()
    optimiser = torch.optim.Adam([offset_KD, bias_K, scale_K], lr=config.lr)
    for step in range(config.n_steps):
        draw = np.random.default_rng((config.seed, step))
        rows = torch.from_numpy(draw.integers(0, len(corpus_ND), config.n_unlabelled))
        direction_KD = (card_KD + offset_KD) * scale_K[:, None]
        centre_K = bias_K - (direction_KD @ corpus_ND[rows].mean(0)).detach()
        risk = _risk(
            tagged_PD @ direction_KD.T + centre_K, labels_PK,
            corpus_ND[rows] @ direction_KD.T + centre_K, prior_K,
        )  # fmt: skip
        loss = risk + config.anchor * offset_KD.square().sum(1).mean()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    with torch.no_grad():
        weight_KD = (card_KD + offset_KD) * scale_K[:, None]
        centre_K = bias_K - weight_KD @ corpus_ND.mean(0)
    return Linear(weight_KD.numpy(), centre_K.numpy())


def _risk(
    tagged_PK: torch.Tensor, labels_PK: torch.Tensor, unlabelled_UK: torch.Tensor,
    prior_K: torch.Tensor,
) -> torch.Tensor:  # fmt: skip
    """Non-negative positive-unlabelled risk, in nats, the mean over concepts."""
    n_K = labels_PK.sum(0).clamp(min=1.0)
    as_positive_K = (softplus(-tagged_PK) * labels_PK).sum(0) / n_K
    as_negative_K = (softplus(tagged_PK) * labels_PK).sum(0) / n_K
    rest_K = softplus(unlabelled_UK).mean(0) - prior_K * as_negative_K
    return (prior_K * as_positive_K + rest_K.clamp(min=0.0)).mean()


def _evaluation(scorer: Scorer, held_out: _Sample, vectors_ND: Floats) -> dict[str, float]:
    scores_NK = scorer.scores(vectors_ND[held_out.rows_P])
    return {
        "mean_average_precision": annotators.mean_of(
            annotators.average_precision(scores_NK, held_out.labels_PK)
        ),
        "recall_at_16": annotators.mean_of(annotators.recall_at(scores_NK, held_out.labels_PK, 16)),
    }
