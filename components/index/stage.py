"""Index: vectors of every training chunk, and the way into their space (paper §6.1.3, B.1).

The vectors are the chunk encoder's, of the text. The transducer carries the network's mean state of
a chunk there. What it finds is similar text, with its source: provenance, no claim of influence.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from components import chunks as chunk_texts
from components import contracts, nearest
from components.index.bridge import fit_transducer
from components.index.config import BuildConfig
from components.index_facts import EncoderFacts, IndexFacts, SearchFacts
from components.manifests import digest_of
from components.nearest import Floats, Neighbours, VectorIndex
from components.order import Integers
from components.retrieval import FACTS_FILE, TABLE_FILE, TRANSDUCER_FILE
from components.tokens import TokenStream
from model import checkpoint as checkpoints
from model import transducer as transducers

_ROWS = 2_000
_SAME = 1e-5
"""Cosines this near 1 belong to one text: vectors are stored in float16."""

_COLUMNS = ("chunk_id", "doc_id", "source", "domain", "licence", "title", "start", "end", "text")


def build(
    checkpoint: Path, tokens: Path, documents: Path, chunks: Path, vectors: Path, index: Path,
    config: BuildConfig,
) -> int:  # fmt: skip
    """Index the training chunks and fit the transducer. Returns the number of chunks indexed."""
    checkpoint_digest = contracts.verify(checkpoint, contracts.CHECKPOINT).digest
    vector_ND = _vectors(vectors, chunks)
    chunk_id_N = np.array([row["chunk_id"] for row in _training_chunks(documents, chunks)])
    indexed_ND = nearest.unit(vector_ND[chunk_id_N])
    table = nearest.build(indexed_ND, config.exact_up_to, config.least_recall, config.seed)
    table.save(index / TABLE_FILE)

    bridge = fit_transducer(
        checkpoints.load(checkpoint), TokenStream(tokens), vector_ND, table, chunk_id_N, config
    )
    transducers.save(bridge.transducer, index / TRANSDUCER_FILE)
    facts = IndexFacts(
        dim=table.width,
        n=table.n,
        kind=table.kind,
        checkpoint_digest=checkpoint_digest,
        transducer_digest=digest_of(index / TRANSDUCER_FILE).sha256,
        encoder=EncoderFacts.model_validate(contracts.json_file(vectors, "encoder.json")),
        recall=_recall(index, table, indexed_ND, config),
        transducer=bridge.facts,
        random_states=bridge.random_states,
        random_texts=bridge.random_texts,
    )
    (index / FACTS_FILE).write_text(facts.model_dump_json(indent=1))
    rows = ({"row": row, **chunk} for row, chunk in enumerate(_training_chunks(documents, chunks)))
    return contracts.write(rows, index, contracts.INDEX)


def _vectors(vectors: Path, chunks: Path) -> Floats:
    n_vectors = contracts.verify(vectors, contracts.VECTORS).rows
    n_chunks = contracts.verify(chunks, contracts.CHUNKS).rows
    if n_vectors != n_chunks:
        raise contracts.ContractError(
            f"{vectors} has {n_vectors} vectors but {chunks} has {n_chunks} chunks; they were "
            f"embedded from other chunks. Run `clearstory rerun --from embed`."
        )
    loaded: Floats = np.load(vectors / "vectors.npy", mmap_mode="r")
    return loaded


def _training_chunks(documents: Path, chunks: Path) -> Iterator[Mapping[str, object]]:
    for batch in chunk_texts.texts(documents, chunks, rows=_ROWS):
        for row, split in enumerate(batch["split"]):
            if split == "train":
                yield {name: batch[name][row] for name in _COLUMNS}


def _recall(
    index: Path, table: VectorIndex, indexed_ND: Floats, config: BuildConfig
) -> SearchFacts:
    """Of the index as written and read again: against exact search, and of each vector itself."""
    again = nearest.load(index / TABLE_FILE, table.kind)
    rows_Q = _spread(table.n, config.recall_queries)
    queries_QD, k = indexed_ND[rows_Q], min(10, table.n)
    found, true = again.search(queries_QD, k), nearest.search(indexed_ND, queries_QD, k)
    return SearchFacts(
        exact_at_10=nearest.recall(found, true.rows_QK),
        self_at_1=_found_themselves(found, rows_Q, indexed_ND),
        n_queries=len(rows_Q),
    )


def _found_themselves(found: Neighbours, rows_Q: Integers, indexed_ND: Floats) -> float:
    """Share of vectors that find themselves first, or a vector that nothing tells from them."""
    cosine_Q = (indexed_ND[found.rows_QK[:, 0]] * indexed_ND[rows_Q]).sum(axis=1)
    return float(((found.rows_QK[:, 0] == rows_Q) | (cosine_Q > 1 - _SAME)).mean())


def _spread(n: int, wanted: int) -> Integers:
    return np.unique(np.linspace(0, n - 1, min(n, wanted)).round().astype(np.int64))
