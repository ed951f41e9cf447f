"""What is known of an index, measured when it was built: `index.json` of Index@1 (paper §6.1.3).

Every share has its number of cases and an interval, for which chunks of one document are drawn
together. A cosine alone says little, so the cosines of random pairs are kept to place it.
"""

from bisect import bisect_left
from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from model.config import Config

CLAIM = "similarity of meaning, not influence: a chunk that is found may never have mattered"


class Measured(Config):
    """A mean, its 95% interval, the chunks it rests on and the documents they come from."""

    value: float
    low: float
    high: float
    n: NonNegativeInt
    n_groups: NonNegativeInt


class Recall(Config):
    """Share of chunks found among the first 1, 10 and 100 rows."""

    at_1: Measured
    at_10: Measured
    at_100: Measured
    chance_at_1: float
    """Share that an order at random would find; ten and a hundred times that at 10 and 100."""


class Spread(Config):
    """Cosines of queries with rows drawn at random: what a cosine is to be measured against."""

    quantiles: tuple[float, ...] = Field(min_length=2)
    """Evenly spaced, the least first."""

    n_pairs: PositiveInt

    def share_below(self, cosine: float) -> float:
        """Share of random pairs that are less alike, in [0, 1]; as fine as the quantiles are."""
        return bisect_left(self.quantiles, cosine) / len(self.quantiles)


class EncoderFacts(Config):
    """The chunk encoder: only its own vectors can be compared with those of the index."""

    name: str
    digest: str
    dim: PositiveInt
    max_wordpieces: PositiveInt


class TransducerFacts(Config):
    """How it was fitted and what it finds for chunks it never learned from."""

    n_parameters: PositiveInt
    n_fitted: PositiveInt
    cosine_held_out: Measured
    cosine_held_out_masked: Measured
    recall_held_back: Recall
    """By mean states over a chunk's tokens, as they are."""

    recall_held_back_masked: Recall
    """By mean states over masked tokens, from which generation commits."""


class SearchFacts(Config):
    """The index as written and read again, against exact search, for texts it does not hold."""

    true_neighbours: Recall
    """Of the first 1, 10 and 100 true neighbours, the share among as many found."""

    self_at_1: Measured
    """Rows that find themselves first, or a row that no cosine tells from them."""

    lists_probed: PositiveInt
    n_candidates: PositiveInt
    table_bytes: PositiveInt
    """Codes, lists and centroids: what a search scans."""

    refine_bytes: NonNegativeInt
    """Whole rows beside the codes, of which a search reads `n_candidates`."""


class VerbatimFacts(Config):
    """How often a chunk of the index is found by itself."""

    by_text: Recall
    by_half: Recall
    """By the middle half of its text."""

    by_tokens: Recall | None
    """BM25 over the network's tokens, for the chunks of `recall_held_back`; None where the rows
    are too many for it."""

    by_visible_tokens: Recall | None
    """The same with the tokens that are left where the state is over masked ones."""


class IndexFacts(Config):
    """Everything in `index.json`."""

    dim: PositiveInt
    metric: Literal["cosine"] = "cosine"
    n: PositiveInt
    n_chunks: PositiveInt
    """Training chunks; those of one text share a row."""

    n_measured: PositiveInt
    """Rows there were when all this was measured; later ones were added."""

    kind: str
    """FAISS's own name for the layout."""

    claims: str = CLAIM
    checkpoint_digest: str
    transducer_digest: str
    encoder: EncoderFacts
    search: SearchFacts
    verbatim: VerbatimFacts
    transducer: TransducerFacts
    random_states: Spread
    """Cosines of held-out chunks' states, carried over, with rows drawn at random."""

    random_texts: Spread
    """The same of held-out chunks' own vectors."""
