"""Tags as text: how they are read out of an answer, normalised and typed (paper §4; method §1.2).

A tag is normalised so that spelling no longer tells two of them apart: NFKC, no markup, lower case,
`_` and `-` as spaces, no other signs, no article in front, no word twice (small models stutter).
A tag in a script that is neither its passage's nor Latin has drifted and is left out.

Kinds are the language model's where it is asked for them. Small models guess, so by default a
rule decides and says no more than it knows: words for forms of text make a *document* tag, words
for manner a *tone* tag, a tag whose words always have capitals in the passage is an *entity*, and
everything else is *content*.
"""

import html
import json
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from components.words import FUNCTION_WORDS

Kind = Literal["content", "tone", "document", "entity"]
KINDS: tuple[Kind, ...] = ("content", "tone", "document", "entity")

_MAX_CHARS = 60
_MAX_WORDS = 6
_MIN_WIDTH = 3
"""Columns a tag takes: a letter is one wide, an ideograph two."""

_ARTICLES = ("a ", "an ", "the ")
_KEPT_SIGNS = "+#'’"
_MARKUP = re.compile(r"</?[A-Za-z][^<>]*>")
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()]*\)")
_FENCE = re.compile(r"^\s*```(?:json)?\s*|\s*```\s*$")
_INNER_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_DOCUMENT_WORDS = """
abstract article biography blog catalogue changelog code comment commentary database definition
dialogue diary dictionary docstring documentation drama entry essay example exercise fiction form
glossary guide interview letter list manual monologue narrative news notation novel outline paper
play poem poetry proof prose report review script snippet soliloquy sonnet source speech stage
statement story summary table theorem tutorial verse
"""
_TONE_WORDS = """
anger angry casual comic didactic emotional enthusiastic exposition factual formal
friendly grief humorous humour informal instructive ironic irony joy joyful lyrical melancholy
mocking neutral objective persuasive playful poetic polite rude sad sarcastic satire scholarly
serious solemn sorrow sorrowful style technical tender terse tone tragic urgent witty
"""

DOCUMENT_WORDS = frozenset(_DOCUMENT_WORDS.split())
TONE_WORDS = frozenset(_TONE_WORDS.split())


@dataclass(frozen=True)
class Tag:
    """A normalised tag and what it says something about."""

    text: str
    kind: Kind


class ParseError(ValueError):
    """An answer is not a list of tags."""


def parse(answer: str) -> list[tuple[str, str]]:
    """Tags of an answer as (text, kind or ""): `{"tags": [...]}` of strings or of objects."""
    try:
        root = json.loads(_FENCE.sub("", answer))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ParseError(f"not JSON: {answer[:80]!r}") from error
    items = root.get("tags") if isinstance(root, dict) else root
    if not isinstance(items, list):
        raise ParseError(f"not a list: {answer[:80]!r}")
    found = []
    for item in items:
        if isinstance(item, str):
            found.append((item, ""))
        elif isinstance(item, dict) and isinstance(item.get("tag"), str):
            found.append((item["tag"], str(item.get("type", ""))))
        else:
            raise ParseError(f"not a tag: {item!r}")
    return found


def typed(found: Iterable[tuple[str, str]], passage: str) -> list[Tag]:
    """Tags of one passage, normalised, each once, in order; what is no tag is left out."""
    tags: dict[str, Tag] = {}
    scripts = _scripts(passage) | {"LATIN"}
    for text, kind in found:
        tag = normalise(text)
        if tag and tag not in tags and _scripts(tag) <= scripts:
            tags[tag] = Tag(tag, kind if kind in KINDS else kind_of(tag, passage))
    return list(tags.values())


def normalise(text: str) -> str:
    """The tag, or nothing where it is too long, has no word or only function words."""
    plain = _LINK.sub(r"\1", _MARKUP.sub(" ", html.unescape(text)))
    spaced = _INNER_CAPITAL.sub(" ", unicodedata.normalize("NFKC", plain))
    signs_as_spaces = "".join(char if _belongs_in_words(char) else " " for char in spaced)
    tag = " ".join(dict.fromkeys(signs_as_spaces.lower().split())).strip("'’ ")
    for article in _ARTICLES:
        tag = tag.removeprefix(article)
    words = tag.split()
    says_something = any(_is_word(word) and word not in FUNCTION_WORDS for word in words)
    fits = len(tag) <= _MAX_CHARS and len(words) <= _MAX_WORDS
    return tag if says_something and fits and _width(tag) >= _MIN_WIDTH else ""


@lru_cache(maxsize=4096)
def _belongs_in_words(char: str) -> bool:
    """Letters, digits and the marks that many scripts write vowels with."""
    return char.isalnum() or char in _KEPT_SIGNS or unicodedata.category(char)[0] == "M"


def _is_word(text: str) -> bool:
    return all(char.isalpha() or unicodedata.category(char)[0] == "M" for char in text)


def _width(text: str) -> int:
    return sum(1 + (unicodedata.east_asian_width(char) in "WF") for char in text)


def _scripts(text: str) -> set[str]:
    """The scripts of its letters, by the first word of the letters' names."""
    letters = {char for char in unicodedata.normalize("NFKC", text) if char.isalpha()}
    return {unicodedata.name(char, "").partition(" ")[0] for char in letters}


def kind_of(tag: str, passage: str) -> Kind:
    """What the rule says about a tag that comes without a kind."""
    words = set(tag.split())
    if words & TONE_WORDS:
        return "tone"
    if words & DOCUMENT_WORDS:
        return "document"
    return "entity" if _is_always_capital(tag, passage) else "content"


def _is_always_capital(tag: str, passage: str) -> bool:
    pattern = r"[\s_-]+".join(re.escape(word) for word in tag.split())
    seen = re.findall(rf"(?<!\w){pattern}(?!\w)", passage, flags=re.IGNORECASE)
    inside = re.findall(rf"(?<=[a-z,;] ){pattern}(?!\w)", passage, flags=re.IGNORECASE)
    capital = all(word[:1].isupper() for text in seen for word in re.split(r"[\s_-]+", text))
    return bool(inside) and capital
