"""Tags without a language model: the phrases of a passage that say most about it.

Candidates are runs of one to three words between function words and signs, as noun phrases mostly
are; names in code are taken apart first. They are ranked by how alike they and the passage are,
and the next is each time the one that is like the passage and unlike those already taken
(maximal marginal relevance).

Of many passages at once those phrases are taken that recur in some and not in most: they join into
concepts, and few of them need encoding.

Shape suffixes: N passages   P phrases of a passage   D width of a vector
"""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from components.atlas.tags import normalise
from components.atlas.vocabulary import key
from components.embedding import Embedder, Floats
from components.words import CODE_WORDS, FUNCTION_WORDS

_RUN = re.compile(r"[A-Za-zÀ-ɏ][\wÀ-ɏ'’]*(?:[ -][A-Za-zÀ-ɏ][\wÀ-ɏ'’]*)*")
_INNER_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOT_NOUNS = re.compile(r"(?:ly|[^aeiou]ed|eth|est)$")
_MAX_WORDS = 3
_FEWEST_LETTERS = 4
_OLD_WEIGHT = 0.35
_RECURRING_BONUS = 0.03
_LEAST_PASSAGES = 4
_LARGEST_SHARE = 0.1
"""Of the passages that a recurring phrase is in."""


def candidates(passage: str) -> list[str]:
    """Phrases that could be tags, normalised, each once, in the order of the passage."""
    found: dict[str, None] = {}
    for run in _RUN.findall(_INNER_CAPITAL.sub(" ", passage.replace("_", " "))):
        for words in _between_function_words(run):
            for length in range(1, _MAX_WORDS + 1):
                for at in range(len(words) - length + 1):
                    phrase = words[at : at + length]
                    if not _NOT_NOUNS.search(phrase[-1]):
                        found.setdefault(normalise(" ".join(phrase)))
    return [phrase for phrase in found if phrase]


def tags_of(
    passages: Sequence[str], passage_ND: Floats, encoder: Embedder, n: int
) -> list[list[str]]:
    """The best phrases of each passage, `n` at most, best first."""
    candidates_of = [candidates(passage) for passage in passages]
    recurring = Counter(phrase for found in candidates_of for phrase in found)
    phrases = sorted(recurring)
    row_of = {phrase: row for row, phrase in enumerate(phrases)}
    phrase_vectors = encoder.embed(phrases)
    chosen = []
    for found, passage_D in zip(candidates_of, passage_ND, strict=True):
        found_PD = phrase_vectors[[row_of[phrase] for phrase in found]]
        bonus_P = [_RECURRING_BONUS * (recurring[phrase] > 1) for phrase in found]
        picked = _diverse(found_PD, found_PD @ passage_D + np.array(bonus_P, np.float32), n)
        chosen.append([found[at] for at in picked])
    return chosen


def recurring_of(
    passages: Sequence[str], passage_ND: Floats, encoder: Embedder, n: int
) -> list[list[str]]:
    """Of each passage the recurring phrases that are most like it, `n` at most, best first."""
    candidates_of = [candidates(passage) for passage in passages]
    seen = Counter(phrase for found in candidates_of for phrase in found)
    most = _LARGEST_SHARE * len(passages)
    kept = sorted(phrase for phrase, count in seen.items() if _LEAST_PASSAGES <= count <= most)
    row_of = {phrase: row for row, phrase in enumerate(kept)}
    kept_PD = encoder.embed(kept)
    chosen = []
    for found, passage_D in zip(candidates_of, passage_ND, strict=True):
        rows = [row_of[phrase] for phrase in found if phrase in row_of]
        order = np.argsort(-(kept_PD[rows] @ passage_D), kind="stable").tolist() if rows else []
        best: dict[str, str] = {}
        for at in order:
            best.setdefault(key(kept[rows[at]]), kept[rows[at]])
        chosen.append(list(best.values())[:n])
    return chosen


def _between_function_words(run: str) -> list[list[str]]:
    runs: list[list[str]] = [[]]
    for word in re.split(r"[ -]+", run):
        low = word.lower().removesuffix("'s").removesuffix("’s")
        skipped = low in FUNCTION_WORDS or low in CODE_WORDS or len(low) < _FEWEST_LETTERS
        if skipped or not low.isalpha():
            runs.append([])
        else:
            runs[-1].append(word)
    return [words for words in runs if words]


def _diverse(found_PD: Floats, relevance_P: Floats, n: int) -> list[int]:
    picked: list[int] = []
    likeness_P = np.zeros(len(found_PD), dtype=np.float32)
    while len(picked) < min(n, len(found_PD)):
        gain_P = relevance_P - _OLD_WEIGHT * likeness_P
        gain_P[picked] = -np.inf
        best = int(gain_P.argmax())
        picked.append(best)
        likeness_P = np.maximum(likeness_P, found_PD @ found_PD[best])
    return picked
