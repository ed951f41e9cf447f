"""Atlas, stage three: learn an annotator from the tagged sample (paper §4).

Three annotators are fitted to the same tagged chunks and compared on the same held-out ones; the
best is kept as it was compared. Thresholds are set on chunks that none of them was fitted to.

Shape suffixes: N chunks   P tagged chunks   M chunks of the pool   H held-out chunks   K concepts
    D vector width
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from components import annotators, contracts, embedding
from components.annotators import (
    Annotator,
    Calibration,
    Floats,
    Integers,
    Kind,
    Linear,
    Neighbours,
    Scorer,
)
from components.atlas import fine_tuning, heads, ranked, tagged_sample
from components.atlas.heads import Examples
from components.atlas.learning_config import LearnConfig
from components.atlas.ranked import Figure, Held, Judged
from components.atlas.tagged_sample import Tagged
from components.chunks import texts
from components.embedding import Embedder
from components.library import Library, open_library

KINDS: tuple[Kind, ...] = ("cards", "neighbours", "trained")
_BATCH_CHUNKS = 4_096


def learn(
    documents: Path, chunks: Path, vectors: Path, tags: Path, concepts: Path, annotator: Path,
    config: LearnConfig,
) -> None:  # fmt: skip
    """Fit three annotators to the tagged chunks, keep the best on held-out ones."""
    vectors_ND, encoder = open_vectors(vectors)
    library = open_library(concepts)
    ground = _ground(chunks, vectors_ND, tags, library, config)
    name, digest = str(encoder["name"]), str(encoder["digest"])
    is_tuned = config.encoder == "fine_tuned"
    found = ground.compared(
        lambda rows: tagged_sample.of_rows(vectors_ND, rows),
        embedding.load(name).embed(ground.cards),
        KINDS[:2] if is_tuned else KINDS, config,
    )  # fmt: skip
    folder = annotator / annotators.ENCODER_FOLDER
    if is_tuned:
        found |= _fine_tuned(ground, texts_of(documents, chunks), folder, config)
    best = max(KINDS, key=lambda kind: found[kind].figures[ranked.MEAN_AVERAGE_PRECISION].value)
    if is_tuned and best == "trained":
        name, digest = annotators.ENCODER_FOLDER, embedding.load(str(folder)).digest
    elif is_tuned:
        shutil.rmtree(folder)
    facts: dict[str, object] = {
        "encoder": name,
        "encoder_digest": digest,
        "library_digest": library.digest,
        "n_neighbours": config.n_neighbours,
        "evaluation": {
            "n_tagged_chunks": len(ground.fitted.rows_P) + len(ground.held_out.rows_P),
            "n_held_out_chunks": len(ground.held_out.rows_P),
            "n_held_out_documents": int(ground.document_H.max()) + 1,
            "n_calibration_chunks": len(ground.unseen_M),
            "chosen_by": ranked.CHOSEN_BY,
            "annotators": {kind: ranked.told(one.figures) for kind, one in found.items()},
        },
    }
    judged = found[best].judged
    kept = Annotator(judged.scorer, judged.calibration, config.max_labels, name)
    annotators.save(kept, annotator, best, facts)


def fit(
    examples: Examples, unseen_MD: Floats, cards_KD: Floats, config: LearnConfig,
    kinds: Sequence[Kind] = KINDS,
) -> dict[Kind, Judged]:  # fmt: skip
    """Annotators of these kinds, with thresholds set on chunks they were not fitted to."""
    prevalence_K = prevalence(examples.labels_PK, config)
    made: dict[Kind, Callable[[], Scorer]] = {
        "cards": lambda: Linear(cards_KD, np.zeros(len(cards_KD), dtype=np.float32)),
        "neighbours": lambda: Neighbours(
            examples.tagged_PD, examples.labels_PK, config.n_neighbours
        ),
        "trained": lambda: heads.fit(examples, cards_KD, prevalence_K, config),
    }
    scorers = {kind: made[kind]() for kind in kinds}
    return {
        kind: Judged(scorer, Calibration.of(scorer, unseen_MD, prevalence_K))
        for kind, scorer in scorers.items()
    }


def prevalence(labels_PK: csr_array, config: LearnConfig) -> Floats:
    """The prior of each concept: its share of tagged chunks, times what taggers miss."""
    counts_K = np.bincount(labels_PK.indices, minlength=labels_PK.shape[1])
    observed_K = counts_K / labels_PK.shape[0] * config.under_reported
    return np.clip(observed_K, config.min_prevalence, config.max_prevalence).astype(np.float32)


def card(name: str, description: str) -> str:
    """What stands on a concept's card, as an encoder reads it."""
    return f"{name}. {description}" if description else name


def read_vectors(vectors: Path) -> tuple[Floats, dict[str, object]]:
    """Vectors (N, D) of every chunk by id, and which encoder made them."""
    stored, encoder = open_vectors(vectors)
    return stored.astype(np.float32), encoder


def open_vectors(vectors: Path) -> tuple[NDArray[np.float16], dict[str, object]]:
    """The same, read from the file as they are asked for."""
    contracts.verify(vectors, contracts.VECTORS)
    stored = np.load(vectors / "vectors.npy", mmap_mode="r")
    return stored, contracts.json_file(vectors, "encoder.json")


def texts_of(documents: Path, chunks: Path) -> Callable[[Integers], list[str]]:
    """What gives the texts of some chunks, in their order."""

    def give(rows: Integers) -> list[str]:
        wanted = set(rows.tolist())
        found = {
            chunk_id: text
            for batch in texts(documents, chunks, rows=_BATCH_CHUNKS)
            for chunk_id, text in zip(batch["chunk_id"], batch["text"], strict=True)
            if chunk_id in wanted
        }
        return [found[row] for row in rows.tolist()]

    return give


@dataclass(frozen=True)
class _Compared:
    """An annotator with its figures on the held-out chunks."""

    judged: Judged
    figures: dict[str, Figure]


@dataclass(frozen=True)
class _Ground:
    """What annotators are fitted to and compared on, whatever encodes it."""

    fitted: Tagged
    held_out: Tagged
    pool_M: Integers
    unseen_M: Integers
    document_H: Integers
    cards: list[str]

    def compared(
        self, vectors_of: Callable[[Integers], Floats], cards_KD: Floats, kinds: Sequence[Kind],
        config: LearnConfig,
    ) -> dict[Kind, _Compared]:  # fmt: skip
        """Annotators of these kinds, over what one encoder makes of chunks and cards."""
        examples = Examples(
            vectors_of(self.fitted.rows_P), self.fitted.labels_PK, vectors_of(self.pool_M)
        )
        held = Held(vectors_of(self.held_out.rows_P), self.held_out.labels_PK, self.document_H)
        found = fit(examples, vectors_of(self.unseen_M), cards_KD, config, kinds)
        return {
            kind: _Compared(
                judged, ranked.by_chunk(judged, held, config.bootstrap_draws, config.seed)
            )
            for kind, judged in found.items()
        }


def _ground(
    chunks: Path, vectors_ND: NDArray[np.float16], tags: Path, library: Library, config: LearnConfig
) -> _Ground:
    sample = tagged_sample.ordered(tagged_sample.read(tags, library), vectors_ND)
    fitted, held_out = sample.split()
    pool_M = tagged_sample.pool(vectors_ND, config.n_pool)
    doc_ids = contracts.read(chunks, contracts.CHUNKS)["doc_id"].take(held_out.rows_P)
    return _Ground(
        fitted, held_out, pool_M,
        unseen_M=pool_M[~np.isin(pool_M, fitted.rows_P)],
        document_H=np.unique(doc_ids.to_pylist(), return_inverse=True)[1].astype(np.int64),
        cards=[card(one.name, one.description) for one in library.concepts],
    )  # fmt: skip


def _fine_tuned(
    ground: _Ground, give: Callable[[Integers], list[str]], folder: Path, config: LearnConfig
) -> dict[Kind, _Compared]:
    """The trained annotator over an encoder that learned as well, which is saved to `folder`."""
    fine_tuning.fine_tune(
        give(ground.fitted.rows_P), ground.fitted.labels_PK, give(ground.pool_M),
        embedding.load(config.fine_tuning.base).embed(ground.cards),
        prevalence(ground.fitted.labels_PK, config), config.fine_tuning, folder,
    )  # fmt: skip
    tuned: Embedder = embedding.load(str(folder))
    return ground.compared(
        lambda rows: tuned.embed(give(rows)), tuned.embed(ground.cards), ("trained",), config
    )
