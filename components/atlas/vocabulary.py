"""Which words can name a thing: titles that people chose, and how words are used (paper §4).

A name that people would use is mostly a noun phrase. Without a parser some signs tell: whether a
word ends a title of an encyclopedia; how often its prose has the word where a noun phrase ends
("the shore of", "a long shore,"); for words that it hardly has, how often the word ends a tag of
several words, and how it is spelt. "Graph" ends "directed graph"; "write" and "abnormal" end
nothing.

Shape suffixes: V titles   D width of a vector
"""

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from components import fetch
from components import titles as encyclopedia
from components.embedding import Embedder, Floats

_BRACKETS = re.compile(r"\s*\([^)]*\)")
_WORD = re.compile(r"[a-z]{3,}")
_BEFORE = "the|a|an|its|their|his|this|of|in|into|by|for|with"
_AFTER = (
    "of|in|and|is|was|are|were|for|that|which|to|as|on|by|or|from|with|at|has|have"
)  # fmt: skip
_END_OF_NOUN_PHRASE = re.compile(
    rf"\b(?:{_BEFORE})\s+(?:[a-z-]+\s+)?([a-z]{{3,}})(?=\s+(?:{_AFTER})\b|[,.;)])"
)
_OF_NOUNS = 0.3
"""Share of its places where a noun ends a phrase like that; of other words it is under 0.1."""

_FEWEST_PLACES = 5
_PRIOR = 1.0
_NOUNS = re.compile(r"(?:[ts]ion|ment|ness|ity|is[mt]|[ae]nce|ship|hood|dom|logy|sis|itis|ture)$")
_NOT_NOUNS = re.compile(r"(?:ly|ous|ive|ful|less|[ai]ble|ary|ical|esque|ing|ed|est|eth)$")
_LIKELY, _UNSEEN, _UNLIKELY = 0.9, 0.5, 0.2
"""How noun-like a word is by its ending."""


@dataclass(frozen=True)
class Vocabulary:
    """Titles with their vectors, and words by how often they head a phrase."""

    titles: tuple[str, ...]
    """As written, without what stands in brackets."""

    vectors_VD: Floats
    title_of: dict[str, str]
    """A title by its `key`."""

    heads: dict[str, float]
    """How noun-like a word is, 0 to 1, where something is known."""

    def noun(self, phrase: str) -> float:
        """How much like a noun phrase this is, 0 to 1: its last word decides."""
        if key(phrase) in self.title_of:
            return 1.0
        word = phrase.casefold().split()[-1] if phrase.split() else ""
        return self.heads.get(singular(word), _by_ending(word))


def vocabulary(source: str, tags: Iterable[str], encoder: Embedder) -> Vocabulary:
    """Titles of a source ("none": no titles), and what all tags say of their words."""
    known = source == "encyclopedia"
    found = encyclopedia.titles() if known else []
    plain = tuple(dict.fromkeys(_BRACKETS.sub("", title) for title in found))
    heads = _in_tags(tags)
    heads |= _in_prose(encyclopedia.prose().lower() if known else "")
    heads |= {singular(title.casefold().split()[-1]): 1.0 for title in plain if title.split()}
    return Vocabulary(
        titles=plain,
        vectors_VD=_vectors(plain, encoder),
        title_of={key(title): title for title in reversed(plain)},
        heads=heads,
    )


def key(name: str) -> str:
    """What two spellings of one name share: words in singular, in the order of the alphabet."""
    words = re.findall(r"[^\W_]+", name.casefold().replace("'s", "").replace("’s", ""))
    return " ".join(sorted(singular(word) for word in words if word not in _SMALL)) or name


def singular(word: str) -> str:
    """An English plural without its ending; other words as they are."""
    for ending, instead in (("ies", "y"), ("ches", "ch"), ("shes", "sh"), ("sses", "ss"),
                            ("xes", "x"), ("ices", "ix")):  # fmt: skip
        if word.endswith(ending) and len(word) > len(ending) + 1:
            return word.removesuffix(ending) + instead
    plural = word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3
    return word[:-1] if plural else word


_SMALL = frozenset(("a", "an", "the", "of", "in", "and", "for", "to", "s"))


def _in_tags(tags: Iterable[str]) -> dict[str, float]:
    """How often a word of a tag of several words is its last."""
    last: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for tag in tags:
        words = [singular(word) for word in tag.split()]
        if len(words) > 1:
            seen.update(words)
            last[words[-1]] += 1
    return {
        word: (last[word] + _PRIOR * _by_ending(word)) / (n + _PRIOR) for word, n in seen.items()
    }


def _in_prose(text: str) -> dict[str, float]:
    """How often a word stands where a noun phrase ends, against how often nouns do."""
    ends = Counter(singular(word) for word in _END_OF_NOUN_PHRASE.findall(text))
    seen = Counter(singular(word) for word in _WORD.findall(text))
    return {
        word: min(1.0, ends[word] / (_OF_NOUNS * n))
        for word, n in seen.items()
        if n >= _FEWEST_PLACES
    }


def _by_ending(word: str) -> float:
    if _NOT_NOUNS.search(word):
        return _UNLIKELY
    return _LIKELY if _NOUNS.search(word) else _UNSEEN


def _vectors(titles: tuple[str, ...], encoder: Embedder) -> Floats:
    """Encoded once for each encoder and kept beside what is fetched: they never change."""
    if not titles:
        return np.empty((0, encoder.width), dtype=np.float32)
    listed = hashlib.sha256("\n".join(titles).encode()).hexdigest()
    path = fetch.cache_folder() / "titles" / f"{encoder.digest[:16]}-{listed[:16]}.npy"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.partial")
        with partial.open("wb") as handle:
            np.save(handle, encoder.embed(titles))
        partial.replace(path)
    return np.asarray(np.load(path), dtype=np.float32)
