"""Fit the transducer on training chunks and measure what retrieval through it finds (paper B.1).

    held back   indexed chunks it never learned from: does a chunk's state find that very chunk?
    held out    chunks of held-out text: how near is the state's vector to the text's own?

Shape suffixes: N chunk   D width of a state   E width of a vector   K row found   P random pair
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from components import nearest
from components.index import measuring
from components.index.config import BuildConfig
from components.index.rows import IndexedChunks
from components.index.states import ChunkStates, Pairs, StateReader
from components.index_facts import Measured, Recall, Spread, TransducerFacts
from components.nearest import Floats, VectorIndex
from components.tokens import TokenStream
from model import transducer
from model.language_model import LanguageModel
from model.transducer import Transducer

_PAIRS_PER_QUERY, _QUANTILES = 50, 201


@dataclass(frozen=True)
class Bridge:
    """The transducer, what is known about it, and the chunks it was held back from."""

    transducer: Transducer
    facts: TransducerFacts
    random_states: Spread
    random_texts: Spread
    held_back: ChunkStates


def fit_transducer(
    lm: LanguageModel, stream: TokenStream, vector_NE: Floats, table: VectorIndex,
    indexed: IndexedChunks, config: BuildConfig,
) -> Bridge:  # fmt: skip
    """Fit on training chunks, each in two states; vectors are those of all chunks."""
    reader = StateReader(lm, stream, config)
    windows = reader.windows("train")
    held_back, n_read = reader.whole_chunks(
        "train", windows[: len(windows) // 2], config.n_held_back
    )
    held_out, _ = reader.whole_chunks("test", reader.windows("test"), config.n_held_out)
    pairs = _unseen(reader.pairs(windows[n_read:], config.n_fitted), held_back, indexed)

    how = transducer.Fit(
        config.hidden_width, config.n_steps, config.batch_pairs, config.lr, config.contrast,
        config.seed,
    )  # fmt: skip
    target_NE = torch.from_numpy(nearest.unit(vector_NE[pairs.chunk_id_N]))
    learned = transducer.fit(pairs.state_ND, target_NE, how)
    measured = _Measure(learned, vector_NE, table, indexed, config)
    facts = TransducerFacts(
        n_parameters=sum(parameter.numel() for parameter in learned.parameters()),
        n_fitted=len(pairs.state_ND),
        cosine_held_out=measured.cosine(held_out, held_out.clean_ND),
        cosine_held_out_masked=measured.cosine(held_out, held_out.masked_ND),
        recall_held_back=measured.recall(held_back, held_back.clean_ND),
        recall_held_back_masked=measured.recall(held_back, held_back.masked_ND),
    )
    return Bridge(
        learned,
        facts,
        measured.spread(measured.carried(held_out.clean_ND)),
        measured.spread(nearest.unit(vector_NE[held_out.chunk_id_N])),
        held_back,
    )


def _unseen(pairs: Pairs, held_back: ChunkStates, indexed: IndexedChunks) -> Pairs:
    """Without chunks that share a row with one that is held back: windows cut chunks in two."""
    rows = {indexed.row_of[chunk] for chunk in held_back.chunk_id_N.tolist()}
    kept = np.flatnonzero(
        [indexed.row_of[chunk] not in rows for chunk in pairs.chunk_id_N.tolist()]
    )
    return Pairs(pairs.chunk_id_N[kept], pairs.state_ND[kept])


@dataclass(frozen=True)
class _Measure:
    transducer: Transducer
    vector_NE: Floats
    table: VectorIndex
    indexed: IndexedChunks
    config: BuildConfig

    def cosine(self, states: ChunkStates, state_ND: Tensor) -> Measured:
        """Cosine of what the transducer says with the chunk's own vector."""
        own_NE = nearest.unit(self.vector_NE[states.chunk_id_N])
        cosine_N = np.einsum("ne,ne->n", self.carried(state_ND), own_NE).astype(np.float64)
        return measuring.mean(cosine_N, states.doc_id_N, self.config)

    def recall(self, states: ChunkStates, state_ND: Tensor) -> Recall:
        """Share of chunks found among the first 1, 10 and 100 rows, and by chance."""
        deepest = min(self.table.n, measuring.DEEPEST)
        found_NK = self.table.search(self.carried(state_ND), deepest).rows_QK
        own_N = np.array([self.indexed.row_of[chunk] for chunk in states.chunk_id_N.tolist()])
        return measuring.recall_of_own(found_NK, own_N, states.doc_id_N, self.table.n, self.config)

    def spread(self, query_NE: Floats) -> Spread:
        """Cosines of these vectors with rows of the index drawn at random."""
        first_ids = self.indexed.first_ids
        random = np.random.default_rng(self.config.seed)
        rows_NP = random.integers(len(first_ids), size=(len(query_NE), _PAIRS_PER_QUERY))
        drawn_NPE = nearest.unit(
            self.vector_NE[first_ids[rows_NP.reshape(-1)]]
        ).reshape(*rows_NP.shape, -1)  # fmt: skip
        cosine_NP = np.einsum("ne,npe->np", query_NE, drawn_NPE)
        quantiles = np.quantile(cosine_NP, np.linspace(0, 1, _QUANTILES)).tolist()
        return Spread(quantiles=tuple(quantiles), n_pairs=cosine_NP.size)

    def carried(self, state_ND: Tensor) -> Floats:
        with torch.no_grad():
            carried: Floats = self.transducer(state_ND).numpy()
        return carried
