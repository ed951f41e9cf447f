"""Index: vectors of every training chunk, and the way into their space (paper §6.1.3, B.1).

The vectors are the chunk encoder's, of the text. The transducer carries the network's mean state of
a chunk there. What it finds is similar text, with its source: provenance, no claim of influence.

Shape suffixes: N chunk   R row   Q query   D width of a vector   K row found
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from components import contracts, nearest, nearest_lists, nearest_shards
from components.index import measuring, verbatim
from components.index.bridge import fit_transducer
from components.index.config import BuildConfig
from components.index.rows import IndexedChunks, collapsed, vectors_of
from components.index_facts import EncoderFacts, IndexFacts, SearchFacts
from components.manifests import digest_of
from components.nearest import VectorIndex
from components.nearest_shards import Vectors
from components.order import Integers
from components.retrieval import FACTS_FILE, TRANSDUCER_FILE, encoder_of
from components.tokens import TokenStream
from model import checkpoint as checkpoints
from model import transducer as transducers

_SAME = 1e-5
"""Cosines this near 1 belong to one text: vectors are stored in float16."""


def build(
    checkpoint: Path, tokens: Path, documents: Path, chunks: Path, vectors: Path, index: Path,
    config: BuildConfig, scratch: Path | None = None,
) -> int:  # fmt: skip
    """Index the training chunks and fit the transducer. Returns the number of rows.

    Goes on from the shards in `scratch`, if a killed attempt left some there.
    """
    checkpoint_digest = contracts.verify(checkpoint, contracts.CHECKPOINT).digest
    vector_ND = vectors_of(vectors, chunks)
    encoder_facts = EncoderFacts.model_validate(contracts.json_file(vectors, "encoder.json"))
    indexed = collapsed(documents, chunks)
    to_index = Vectors(vector_ND, indexed.first_ids)
    asked = _HeldOut(documents, chunks, indexed, config)
    with _shards_in(scratch) as shards:
        table = nearest_shards.build(
            to_index, nearest.unit(vector_ND[asked.chunk_id_Q]), index, shards, config.layout
        )
    stream = TokenStream(tokens)
    bridge = fit_transducer(checkpoints.load(checkpoint), stream, vector_ND, table, indexed, config)
    transducers.save(bridge.transducer, index / TRANSDUCER_FILE)
    facts = IndexFacts(
        dim=table.width,
        n=table.n,
        n_chunks=len(indexed.row_of),
        n_measured=table.n,
        kind=table.kind,
        checkpoint_digest=checkpoint_digest,
        transducer_digest=digest_of(index / TRANSDUCER_FILE).sha256,
        encoder=encoder_facts,
        search=_search(index, table, to_index, asked, config),
        verbatim=verbatim.measure(
            table, encoder_of(encoder_facts), indexed, bridge.held_back, stream, config
        ),
        transducer=bridge.facts,
        random_states=bridge.random_states,
        random_texts=bridge.random_texts,
    )
    (index / FACTS_FILE).write_text(facts.model_dump_json(indent=1))
    return contracts.write(indexed.rows(), index, contracts.INDEX)


class _HeldOut:
    """Chunks outside the training split, evenly spread: what the index is asked without them."""

    def __init__(
        self, documents: Path, chunks: Path, indexed: IndexedChunks, config: BuildConfig
    ) -> None:
        table = contracts.read(chunks, contracts.CHUNKS, ("chunk_id", "doc_id"))
        outside = [
            (chunk_id, doc_id)
            for chunk_id, doc_id in zip(
                table["chunk_id"].to_pylist(), table["doc_id"].to_pylist(), strict=True
            )
            if chunk_id not in indexed.row_of
        ]
        if not outside:
            raise ValueError(
                f"every document of {documents} is trained on, so there is no other text to "
                f"measure the recall with; keep documents for the splits valid and test"
            )
        taken = verbatim.spread(len(outside), config.layout.recall_queries).tolist()
        self.chunk_id_Q: Integers = np.array([outside[at][0] for at in taken])
        self.doc_id_Q: NDArray[np.str_] = np.array([outside[at][1] for at in taken])


def _search(
    index: Path, built: VectorIndex, vectors: Vectors, asked: _HeldOut, config: BuildConfig
) -> SearchFacts:
    """Of the index as written and read again: against exact search, and of each row itself."""
    table = nearest_lists.open_index(index, built.kind, config.layout.n_candidates)
    queries_QD, deepest = vectors.stored_ND[asked.chunk_id_Q], min(measuring.DEEPEST, table.n)
    found = table.search(queries_QD, deepest)
    true = nearest_shards.exact_neighbours(vectors, queries_QD, deepest)
    rows_R = verbatim.spread(table.n, config.layout.recall_queries)
    row_files = [index / name for name in nearest_lists.FILES if (index / name).is_file()]
    sizes = {path.name: path.stat().st_size for path in row_files}
    return SearchFacts(
        true_neighbours=measuring.recall_of_true(
            found.rows_QK, true.rows_QK, asked.doc_id_Q, table.n, config
        ),
        self_at_1=measuring.mean(
            _found_themselves(table, rows_R, vectors), rows_R.astype(np.str_), config
        ),
        lists_probed=nearest_lists.n_probed(table),
        n_candidates=config.layout.n_candidates,
        refine_bytes=sizes.pop(nearest_lists.ROWS_FILE, 0),
        table_bytes=sum(sizes.values()),
    )


def _found_themselves(
    table: VectorIndex, rows_R: Integers, vectors: Vectors
) -> NDArray[np.float64]:
    """1 for rows that find themselves first, or a row that nothing tells from them."""
    own_RD = nearest.unit(vectors.stored_ND[vectors.chosen_N[rows_R]])
    found_R = table.search(own_RD, 1).rows_QK[:, 0]
    first_RD = nearest.unit(vectors.stored_ND[vectors.chosen_N[found_R]])
    cosine_R = (first_RD * own_RD).sum(axis=1)
    return ((found_R == rows_R) | (cosine_R > 1 - _SAME)).astype(np.float64)


@contextmanager
def _shards_in(scratch: Path | None) -> Iterator[Path]:
    """Where shards are kept: below `scratch`, or nowhere for longer than the block."""
    if scratch is not None:
        yield scratch / "shards"
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "shards"
