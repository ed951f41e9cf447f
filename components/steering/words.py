"""A concept's presence in a text, judged by its lifted words and not by the network.

    P(concept | text) = σ( logit prevalence + Σ log-odds of the lifted words that occur )

Naive Bayes over words the corpus lifted, each counted once: a text that repeats one word is not
the more about the concept.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from components.library import KnownConcept
from components.lifted import log_odds

_LEAST, _MOST = 1e-4, 0.5


@dataclass(frozen=True)
class WordJudge:
    """A concept with the log-odds of its lifted words, by token id."""

    concept: KnownConcept
    log_odds: dict[int, float]

    def score(self, token_ids: Sequence[int]) -> float:
        """Probability, in 0 … 1, that the text has the concept."""
        prior = min(_MOST, max(_LEAST, self.concept.prevalence))
        evidence = sum(self.log_odds.get(token_id, 0.0) for token_id in set(token_ids))
        return 1 / (1 + math.exp(-(math.log(prior / (1 - prior)) + evidence)))


def judges(lifted: Path, concepts: Sequence[KnownConcept], min_words: int) -> list[WordJudge]:
    """The concepts that have enough lifted words, by prevalence, rarest first."""
    found = log_odds(lifted, len(concepts))
    able = [
        WordJudge(concept, words)
        for concept, words in zip(concepts, found, strict=True)
        if len(words) >= min_words
    ]
    if not able:
        raise ValueError(
            f"no concept has {min_words} lifted words, so none can be judged by its words; lower "
            f"min_words, or lift more of them"
        )
    return sorted(able, key=lambda judge: (judge.concept.prevalence, judge.concept.concept_id))
