"""Which words can name a thing: titles that people chose, and how tags use a word (paper §4).

A name that people would use is mostly a noun phrase. Without a parser two signs tell: whether a
word ends a title of an encyclopedia, and how often it ends a tag of several words rather than
standing before the end. "Graph" ends "directed graph"; "write" ends nothing.

Shape suffixes: V titles   D width of a vector
"""

import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from components import fetch
from components import titles as encyclopedia
from components.embedding import Embedder, Floats

_BRACKETS = re.compile(r"\s*\([^)]*\)")
_PRIOR = 1.0
_UNSEEN = 0.6
"""How noun-like a word is that neither titles nor tags of several words tell anything about."""

_NOT_NOUNS = re.compile(r"(?:ly|ous|ive|ful|less|able|ible|ary|ical|esque|ing|ed)$")
_UNLIKELY = 0.3


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
        unseen = _UNLIKELY if _NOT_NOUNS.search(word) else _UNSEEN
        return self.heads.get(singular(word), unseen)


def vocabulary(source: str, tags: Iterable[str], encoder: Embedder) -> Vocabulary:
    """Titles of a source ("none": no titles), and what all tags say of their words."""
    found = encyclopedia.titles() if source == "encyclopedia" else []
    plain = tuple(dict.fromkeys(_BRACKETS.sub("", title) for title in found))
    heads = _heads(tags)
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


def _heads(tags: Iterable[str]) -> dict[str, float]:
    last: dict[str, int] = {}
    seen: dict[str, int] = {}
    for tag in tags:
        words = tag.split()
        if len(words) < 2:
            continue
        for word in words:
            word = singular(word)
            seen[word] = seen.get(word, 0) + 1
        word = singular(words[-1])
        last[word] = last.get(word, 0) + 1
    return {
        word: (last.get(word, 0) + _PRIOR * (_UNLIKELY if _NOT_NOUNS.search(word) else _UNSEEN))
        / (n + _PRIOR)
        for word, n in seen.items()
    }


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
