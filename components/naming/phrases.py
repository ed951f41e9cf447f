"""Names without a language model: the phrase that tells activating chunks from others.

Candidates are words and pairs of words that are commoner in the activating chunks. Each is tried
as a name on the chunks it came from; the one whose vector ranks them best is taken. Whether it
holds elsewhere is another stage's question.

Shape suffixes: N chunk   P phrase   D width of a vector
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from components.embedding import Embedder, Floats
from components.words import CODE_WORDS, FUNCTION_WORDS
from model.ranking import rank

_WORD = re.compile(r"[A-Za-zÀ-ɏ][\w'’-]{2,}")
_LEAST_CHUNKS = 2
_PRIOR = 0.5


def lifted(active: Sequence[str], others: Sequence[str], n: int) -> list[str]:
    """Phrases by log-odds of being in an activating chunk, the highest first."""
    in_active = Counter(phrase for text in active for phrase in set(_phrases(text)))
    in_others = Counter(phrase for text in others for phrase in set(_phrases(text)))
    scored = [
        (_log_odds(count, len(active), in_others[phrase], len(others)), phrase)
        for phrase, count in in_active.items()
        if count >= _LEAST_CHUNKS
    ]
    return [phrase for _, phrase in sorted(scored, key=lambda each: (-each[0], each[1]))[:n]]


def ranked(
    phrases: Sequence[str], vectors_ND: Floats, active_N: NDArray[np.bool_], encoder: Embedder
) -> list[str]:
    """Phrases by how well their vectors tell active chunks from others, the best first."""
    if not phrases:
        return []
    cosine_NP = vectors_ND @ encoder.embed(phrases).T
    weight_N1 = np.ones((len(active_N), 1), dtype=np.float32)
    auc = [
        float(rank(np.ascontiguousarray(column), active_N, weight_N1).auroc_W[0])
        for column in cosine_NP.T
    ]
    return [phrases[at] for at in np.argsort(-np.array(auc), kind="stable").tolist()]


def _phrases(text: str) -> Iterator[str]:
    words = [word.lower() for word in _WORD.findall(text)]
    telling = [word if _tells(word) else "" for word in words]
    yield from (word for word in telling if word)
    yield from (f"{one} {other}" for one, other in pairwise(telling) if one and other)


def _tells(word: str) -> bool:
    return word not in FUNCTION_WORDS and word not in CODE_WORDS


def _log_odds(count: int, n: int, count_others: int, n_others: int) -> float:
    """Of occurrence, against the others, in standard deviations."""
    here, there = count + _PRIOR, count_others + _PRIOR
    absent, absent_there = n - count + _PRIOR, n_others - count_others + _PRIOR
    log_odds = math.log(here / absent) - math.log(there / absent_there)
    return log_odds / math.sqrt(1 / here + 1 / absent + 1 / there + 1 / absent_there)
