"""A static encoder from the vectors of a corpus that another encoder made (paper §4, at scale).

    chunks with their vectors  ->  table of word pieces  ->  how near on chunks held out

Shape suffixes: N chunks   D vector width
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pydantic import PositiveFloat, PositiveInt

from components import contracts, embedding, static_encoder
from components.atlas.vectors import ENCODER_FILE, VECTORS_FILE
from components.chunks import texts
from components.static_encoder import Floats, StaticEncoder
from model.config import Config

_ROWS = 4_096


class DistilConfig(Config):
    """How a static encoder is learned."""

    max_chunks: PositiveInt = 50_000
    """Chunks to learn from, evenly spaced over the corpus."""

    ridge: PositiveFloat = 1.0
    n_iterations: PositiveInt = 15

    every_held_out: PositiveInt = 20
    """Of these chunks one is not learned from; the nearness to its vector is told."""


def distil(
    documents: Path, chunks: Path, vectors: Path, encoder: Path, config: DistilConfig
) -> StaticEncoder:
    """Write a static encoder into `encoder` and open it. Raises ValueError for too few chunks."""
    contracts.verify(vectors, contracts.VECTORS)
    made_by = contracts.json_file(vectors, ENCODER_FILE)
    stored_ND = np.load(vectors / VECTORS_FILE, mmap_mode="r")
    step = max(1, -(-len(stored_ND) // config.max_chunks))
    rows_N = np.arange(0, len(stored_ND), step)
    taken = _texts(documents, chunks, step)
    vectors_ND = np.asarray(stored_ND[rows_N], dtype=np.float32)
    return learned(taken, vectors_ND, str(made_by["name"]), encoder, config)


def learned(
    chunk_texts: Sequence[str], vectors_ND: Floats, teacher: str, encoder: Path,
    config: DistilConfig,
) -> StaticEncoder:  # fmt: skip
    """The same from texts and the vectors that the encoder named `teacher` made of them."""
    held_out_N = np.arange(len(chunk_texts)) % config.every_held_out == config.every_held_out - 1
    if not held_out_N.any():
        raise ValueError(
            f"{len(chunk_texts)} chunks are too few: one of {config.every_held_out} is held out; "
            f"embed more of the corpus, or lower every_held_out"
        )
    tokenizer, taught = embedding.tokenizer_of(teacher), embedding.load(teacher)
    learned_from = [text for text, held in zip(chunk_texts, held_out_N, strict=True) if not held]
    counts = static_encoder.counts(learned_from, tokenizer, taught.max_wordpieces)
    table = static_encoder.learn(
        counts, vectors_ND[~held_out_N], ridge=config.ridge, n_iterations=config.n_iterations
    )
    held = [text for text, held in zip(chunk_texts, held_out_N, strict=True) if held]
    found = table.vectors(static_encoder.counts(held, tokenizer, taught.max_wordpieces))
    facts: dict[str, object] = {
        "teacher": taught.name,
        "teacher_digest": taught.digest,
        "n_chunks": len(learned_from),
        "cosine_held_out": round(float((found * vectors_ND[held_out_N]).sum(axis=1).mean()), 4),
        "n_held_out": len(held),
        **config.model_dump(),
    }
    return static_encoder.save(
        table, tokenizer, encoder, max_wordpieces=taught.max_wordpieces, facts=facts
    )


def _texts(documents: Path, chunks: Path, step: int) -> list[str]:
    found: list[str] = []
    first = 0
    for batch in texts(documents, chunks, rows=_ROWS):
        found += batch["text"][-first % step :: step]
        first += len(batch["text"])
    return found
