"""Documents, Chunks, Concepts and Labels of a few words each, written as artifacts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from components import contracts
from components.library import freeze, open_library
from tests.components.written_labels import write_labels


@dataclass(frozen=True)
class Text:
    """A document as its chunks, each with the scores of its concepts."""

    name: str
    split: str
    domain: str
    chunks: Sequence[tuple[str, Mapping[int, float]]]


@dataclass(frozen=True)
class Corpus:
    """Folders of the four artifacts that packing reads."""

    documents: Path
    chunks: Path
    concepts: Path
    labels: Path


def write_corpus(folder: Path, texts: Sequence[Text], n_concepts: int) -> Corpus:
    """Write all four below `folder`."""
    corpus = Corpus(*(folder / name for name in ("documents", "chunks", "concepts", "labels")))
    for path in (corpus.documents, corpus.chunks, corpus.concepts, corpus.labels):
        path.mkdir(parents=True)
    documents, chunks, labels = [], [], []
    for text in texts:
        documents.append(
            {
                "doc_id": text.name, "source": "made-up", "source_version": "1",
                "locator": text.name, "domain": text.domain, "licence": "CC0-1.0",
                "title": text.name, "split": text.split,
                "text": "".join(chunk for chunk, _ in text.chunks),
            }
        )  # fmt: skip
        start = 0
        for chunk, scores in text.chunks:
            chunk_id = len(chunks)
            chunks.append(
                {
                    "chunk_id": chunk_id, "doc_id": text.name, "start": start,
                    "end": start + len(chunk), "n_wordpieces": 1, "status": "ok",
                }
            )  # fmt: skip
            labels += [
                {"chunk_id": chunk_id, "concept_id": concept_id, "score": score}
                for concept_id, score in scores.items()
            ]
            start += len(chunk)
    contracts.write(documents, corpus.documents, contracts.DOCUMENTS)
    contracts.write(chunks, corpus.chunks, contracts.CHUNKS)
    _write_concepts(corpus.concepts, n_concepts)
    write_labels(labels, corpus.labels, open_library(corpus.concepts).digest)
    return corpus


def _write_concepts(folder: Path, n_concepts: int) -> None:
    rows = [
        {
            "concept_id": number, "name": f"concept {number}", "description": "", "kind": "content",
            "parent": "", "taxonomy": "", "prevalence": 0.1, "n_chunks": 1, "coherence": 0.5,
            "members": [],
        }
        for number in range(n_concepts)
    ]  # fmt: skip
    freeze(rows, np.eye(n_concepts, dtype=np.float32), {}, folder)
