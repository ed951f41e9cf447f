"""Fit the transducer on training chunks and measure what retrieval through it finds (paper B.1).

    held back   indexed chunks it never learned from: does a chunk's state find that very chunk?
    held out    chunks of held-out text: how near is the state's vector to the text's own?

Shape suffixes: N chunk   D width of a state   E width of a vector   K neighbours
    P random pair
"""

from dataclasses import asdict, dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from components import nearest
from components.index.config import BuildConfig
from components.index.states import ChunkStates, chunk_states
from components.index_facts import Measured, Recall, Spread, TransducerFacts
from components.nearest import Floats, VectorIndex
from components.order import Integers
from components.tokens import TokenStream
from model import intervals, transducer
from model.language_model import LanguageModel
from model.transducer import Transducer

RECALL_AT = (1, 10, 100)
_PAIRS_PER_QUERY, _QUANTILES = 50, 201


@dataclass(frozen=True)
class Bridge:
    """The transducer, and what is known about it."""

    transducer: Transducer
    facts: TransducerFacts
    random_states: Spread
    random_texts: Spread


def fit_transducer(
    lm: LanguageModel, stream: TokenStream, vector_NE: Floats, table: VectorIndex,
    indexed_N: Integers, config: BuildConfig,
) -> Bridge:  # fmt: skip
    """Fit on chunks of the index, in two states each; `indexed_N` are the chunk ids of its rows."""
    states = chunk_states(lm, stream, "train", config.n_fitted + config.n_held_back, config)
    n_held_back = min(config.n_held_back, len(states) // 2)
    held_back, fitted = states.rows(slice(n_held_back)), states.rows(slice(n_held_back, None))
    held_out = chunk_states(lm, stream, "test", config.n_held_out, config)

    target_NE = _targets(vector_NE, fitted)
    how = transducer.Fit(
        config.hidden_width, config.n_steps, config.batch_pairs, config.lr, config.contrast,
        config.seed,
    )  # fmt: skip
    learned = transducer.fit(
        torch.cat([fitted.clean_ND, fitted.masked_ND]), torch.cat([target_NE, target_NE]), how
    )
    measured = _Measure(learned, vector_NE, table, indexed_N, config)
    facts = TransducerFacts(
        n_parameters=sum(parameter.numel() for parameter in learned.parameters()),
        n_fitted=len(fitted),
        cosine_fitted=measured.cosine(fitted, fitted.clean_ND),
        cosine_held_out=measured.cosine(held_out, held_out.clean_ND),
        cosine_held_out_masked=measured.cosine(held_out, held_out.masked_ND),
        recall_held_back=measured.recall(held_back, held_back.clean_ND),
        recall_held_back_masked=measured.recall(held_back, held_back.masked_ND),
    )
    return Bridge(
        learned,
        facts,
        measured.spread(measured.carried(held_out.clean_ND)),
        measured.spread(_targets(vector_NE, held_out).numpy()),
    )


@dataclass(frozen=True)
class _Measure:
    transducer: Transducer
    vector_NE: Floats
    table: VectorIndex
    indexed_N: Integers
    config: BuildConfig

    def cosine(self, states: ChunkStates, state_ND: Tensor) -> Measured:
        """Cosine of what the transducer says with the chunk's own vector."""
        found_NE = torch.from_numpy(self.carried(state_ND))
        own_N = (found_NE * _targets(self.vector_NE, states)).sum(-1)
        return self._mean(own_N.double().numpy(), states)

    def recall(self, states: ChunkStates, state_ND: Tensor) -> Recall:
        """Share of chunks found among the first 1, 10 and 100 of the index, and by chance."""
        deepest = min(self.table.n, max(RECALL_AT))
        found_NK = self.indexed_N[self.table.search(self.carried(state_ND), deepest).rows_QK]
        hit_NK = found_NK == states.chunk_id_N[:, None]
        at_1, at_10, at_100 = (
            self._mean(hit_NK[:, :k].any(axis=1).astype(np.float64), states) for k in RECALL_AT
        )
        return Recall(at_1=at_1, at_10=at_10, at_100=at_100, chance_at_1=1 / self.table.n)

    def spread(self, query_NE: Floats) -> Spread:
        """Cosines of these vectors with rows of the index drawn at random."""
        random = np.random.default_rng(self.config.seed)
        rows_NP = random.integers(len(self.indexed_N), size=(len(query_NE), _PAIRS_PER_QUERY))
        drawn_NPE = nearest.unit(
            self.vector_NE[self.indexed_N[rows_NP.reshape(-1)]]
        ).reshape(*rows_NP.shape, -1)  # fmt: skip
        cosine_NP = np.einsum("ne,npe->np", query_NE, drawn_NPE)
        quantiles = np.quantile(cosine_NP, np.linspace(0, 1, _QUANTILES)).tolist()
        return Spread(quantiles=tuple(quantiles), n_pairs=cosine_NP.size)

    def carried(self, state_ND: Tensor) -> Floats:
        with torch.no_grad():
            carried: Floats = self.transducer(state_ND).numpy()
        return carried

    def _mean(self, values_N: NDArray[np.float64], states: ChunkStates) -> Measured:
        """Mean with its interval; chunks of one document are drawn together."""
        documents, group_N = np.unique(states.doc_id_N, return_inverse=True)
        sum_G = intervals.by_group(values_N, group_N, len(documents))
        count_G = intervals.by_group(np.ones_like(values_N), group_N, len(documents))
        found = intervals.ratio_interval(
            sum_G, count_G, draws=self.config.bootstrap_draws, seed=self.config.seed
        )
        return Measured(**asdict(found), n=len(values_N))


def _targets(vector_NE: Floats, states: ChunkStates) -> Tensor:
    return torch.from_numpy(nearest.unit(vector_NE[states.chunk_id_N]))
