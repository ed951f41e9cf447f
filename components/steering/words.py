"""A concept's presence in a text, judged by its lifted words and not by the network.

    P(concept | text) = σ( logit prevalence + Σ log-odds of the lifted words that occur )

Naive Bayes over words the corpus lifted, each counted once: a text that repeats one word is not
the more about the concept.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from components import contracts
from components.library import KnownConcept

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
    found: dict[int, dict[int, float]] = {}
    for row in contracts.read(lifted, contracts.LIFTED_WORDS).to_pylist():
        found.setdefault(row["concept_id"], {})[row["token_id"]] = row["log_odds"]
    strangers = [concept_id for concept_id in found if concept_id >= len(concepts)]
    if strangers:
        raise contracts.ContractError(
            f"{lifted} has words of concepts {strangers[:5]}, but the checkpoint knows "
            f"0 … {len(concepts) - 1}: they come from two libraries. Run `clearstory run` again."
        )
    able = [
        WordJudge(concept, found[concept.concept_id])
        for concept in concepts
        if len(found.get(concept.concept_id, {})) >= min_words
    ]
    if not able:
        raise ValueError(
            f"no concept has {min_words} lifted words, so none can be judged by its words; lower "
            f"min_words, or lift more of them"
        )
    return sorted(able, key=lambda judge: (judge.concept.prevalence, judge.concept.concept_id))
