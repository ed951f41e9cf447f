"""Small artifacts that obey their contracts, as rows to break one at a time."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from components import contracts
from components.contracts import Contract
from components.gates.config import (
    CheckConfig,
    ChunkBounds,
    ConceptBounds,
    DocumentBounds,
    LabelBounds,
    LiftedBounds,
    MessageBounds,
    TagBounds,
    TokenBounds,
)

Row = dict[str, object]
BLOCK = 4
CONFIG = CheckConfig(
    documents=DocumentBounds(min_documents=6, min_domains=2),
    chunks=ChunkBounds(min_chunks=3, max_wordpieces=9),
    tags=TagBounds(
        min_tagged_chunks=3, min_distinct_tags=3, min_mean_tags_per_chunk=1.5, max_tags_per_chunk=3,
        max_commonest_tag_share=0.7, max_parse_failed_share=0.3,
    ),
    concepts=ConceptBounds(min_concepts=3, max_prevalence=0.4),
    labels=LabelBounds(
        min_labelled_chunks=3, min_concepts=2, max_labels_per_chunk=2,
        max_commonest_concept_share=0.8,
    ),
    lifted=LiftedBounds(min_words=3, min_concepts=2, min_support=5, max_words_per_concept=2),
    tokens=TokenBounds(min_train_tokens=8, min_domains=2, max_concepts_per_span=2),
    messages=MessageBounds(min_conversations=3, min_distinct_answers=2, max_messages=5),
)  # fmt: skip


def documents() -> list[Row]:
    return [
        {
            "doc_id": f"d{i}", "source": "a source", "source_version": "1", "locator": str(i),
            "domain": ["mathematics", "literature"][i % 2], "licence": "CC0-1.0",
            "title": f"Title {i}", "split": ["train", "valid", "test"][i // 2],
            "text": f"Text number {i}.",
        }
        for i in range(6)
    ]  # fmt: skip


def chunks() -> list[Row]:
    cuts = [("d0", 0, 5), ("d0", 5, 9), ("d1", 0, 7), ("d2", 0, 3)]
    return [
        {"chunk_id": i, "doc_id": doc_id, "start": start, "end": end, "n_wordpieces": end - start,
         "status": "ok"}
        for i, (doc_id, start, end) in enumerate(cuts)
    ]  # fmt: skip


def tags() -> list[Row]:
    said = {0: ["algebra", "proof"], 2: ["sea voyage", "irony"], 3: ["algebra", "lemma"]}
    return [
        {"chunk_id": chunk_id, "tag": tag, "kind": "content"}
        for chunk_id, tags_of in said.items()
        for tag in tags_of
    ]


def concepts() -> list[Row]:
    return [
        {"concept_id": i, "name": name, "description": f"About {name}.", "kind": "content",
         "parent": "science", "taxonomy": f"science / {name}", "prevalence": 0.1 + i / 10,
         "n_chunks": i + 1, "coherence": 0.5 + i / 10, "members": [name]}
        for i, name in enumerate(["algebra", "proof", "voyages"])
    ]  # fmt: skip


def labels() -> list[Row]:
    pairs = [(0, 0), (0, 1), (1, 2), (2, 0), (3, 1)]
    return [{"chunk_id": a, "concept_id": b, "score": 0.5 + a / 10} for a, b in pairs]


def lifted() -> list[Row]:
    pairs = [(0, 7), (0, 8), (1, 7)]
    return [{"concept_id": c, "token_id": t, "log_odds": 1.5, "support": 5} for c, t in pairs]


def spans() -> list[Row]:
    tiles = [
        (0, "d0", "train", 0, 5, [0, 1]), (1, "d1", "train", 5, 12, []),
        (2, "d2", "valid", 12, 15, [2]), (-1, "", "valid", 15, 16, []),
        (3, "d3", "test", 16, 20, [1]),
    ]  # fmt: skip
    return [
        {"span_id": i, "chunk_id": chunk_id, "doc_id": doc_id, "split": split,
         "domain": "" if chunk_id < 0 else ["mathematics", "literature"][i % 2], "source": "s",
         "token_start": start, "token_end": end, "n_bytes": 0 if chunk_id < 0 else 9,
         "labelled": chunk_id >= 0, "concept_ids": ids}
        for i, (chunk_id, doc_id, split, start, end, ids) in enumerate(tiles)
    ]  # fmt: skip


def messages() -> list[Row]:
    roles = [("user", "assistant"), ("system", "user", "assistant"), ("user", "assistant") * 2]
    return [
        {"conversation_id": f"c{i}", "source": "a source", "licence": "CC0-1.0",
         "messages": [{"role": role, "content": f"{role} {i} {at}"}
                      for at, role in enumerate(spoken)]}
        for i, spoken in enumerate(roles)
    ]  # fmt: skip


FILES: dict[str, dict[str, object]] = {
    "Tags": {"sample.json": {"tagged": [0, 2, 3], "parse_failed": [1]}},
    "Concepts": {"library.json": {"n_concepts": 3}, "centroids.npy": np.zeros((3, 2), np.float32)},
    "Labels": {"labels.json": {"library_digest": "l", "annotator_digest": "a", "n_chunks": 3}},
    "Tokens": {
        "stream.npy": np.arange(20, dtype=np.uint16), "tokenizer.json": {},
        "tokens.json": {
            "vocab_size": 20, "block": BLOCK,
            "splits": {"train": [0, 12], "valid": [12, 16], "test": [16, 20]},
        },
    },
}  # fmt: skip

ROWS: dict[str, Callable[[], list[Row]]] = {
    "Documents": documents, "Chunks": chunks, "Tags": tags, "Concepts": concepts,
    "Labels": labels, "LiftedWords": lifted, "Tokens": spans, "Messages": messages,
}  # fmt: skip


def write(folder: Path, name: str, rows: list[Row], files: dict[str, object] | None = None) -> Path:
    """An artifact of these rows, types as the contract says."""
    contract = contracts.ALL[name]
    return write_table(folder, contract, pa.Table.from_pylist(rows, schema=contract.schema), files)


def write_table(
    folder: Path, contract: Contract, table: pa.Table, files: dict[str, object] | None = None
) -> Path:
    """An artifact of this table, as an older or foreign writer might have sealed it."""
    folder.mkdir(parents=True)
    for file, content in {**FILES.get(contract.name, {}), **(files or {})}.items():
        if isinstance(content, np.ndarray):
            np.save(folder / file, content)
        else:
            (folder / file).write_text(json.dumps(content))
    pq.write_table(table, folder / contracts.ROWS_FILE)
    contracts.seal(folder, contract, rows=table.num_rows)
    return folder
