"""The corpus: texts of many sources become documents with provenance (paper §9.1)."""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from components import contracts, fetch
from components.corpus.clean import documents_of
from components.corpus.config import CorpusConfig, FolderSource, PackageSource, Source
from components.corpus.duplicates import Seen
from components.corpus.readers import (
    encyclopedia,
    folder,
    hub,
    literature,
    mathematics,
    medicine,
    source_code,
)
from components.corpus.readers.folder import CorpusError
from components.corpus.record import Record, Refusal
from components.corpus.splits import split_of

_READERS = {
    "encyclopedia": encyclopedia.read,
    "literature": literature.read,
    "medicine": medicine.read,
    "mathematics": mathematics.read,
    "code": source_code.read,
}
_MAX_LOCATORS = 20


def ingest(documents: Path, config: CorpusConfig) -> int:
    """Write the documents of all sources, and `ingest.json` about what was left out and why."""
    fetch.need(config.packages)
    dropped, seen = Dropped(), Seen(config.near_duplicate, config.seed)
    kept: list[Record] = []
    for source in config.sources:
        chosen = list(_chosen(source, config, seen, dropped))
        kept += sorted(chosen, key=lambda record: (record.source, _natural(record.locator)))
    if not kept:
        raise CorpusError(
            f"no document is left: {dropped.summary()}. Look at the limits in the recipe"
        )
    splits = _splits(kept, config)
    (documents / "ingest.json").write_text(json.dumps(_account(kept, splits, dropped), indent=1))
    rows = (
        {**asdict(record), "doc_id": record.doc_id, "split": splits[record.doc_id]}
        for record in kept
    )
    return contracts.write(rows, documents, contracts.DOCUMENTS)


@dataclass
class Dropped:
    """What did not become a document, by reason: how often, and where the first ones were."""

    counts: dict[str, int] = field(default_factory=dict)
    locators: dict[str, list[str]] = field(default_factory=dict)

    def add(self, locator: str, reason: str) -> None:
        """Count one."""
        self.counts[reason] = self.counts.get(reason, 0) + 1
        places = self.locators.setdefault(reason, [])
        if len(places) < _MAX_LOCATORS:
            places.append(locator)

    def summary(self) -> str:
        """For a person."""
        named = [
            f"{n} {reason} ({', '.join(self.locators[reason][:3])}{', …' if n > 3 else ''})"
            for reason, n in sorted(self.counts.items())
        ]
        return "; ".join(named) or "nothing was read"


def _chosen(source: Source, config: CorpusConfig, seen: Seen, dropped: Dropped) -> Iterator[Record]:
    """New documents of a source, in its order, until its share of the corpus is full."""
    n_bytes = 0
    for found in _read(source):
        for document in [found] if isinstance(found, Refusal) else documents_of(found, config):
            if isinstance(document, Refusal):
                dropped.add(document.locator, document.reason)
            elif duplicate := seen.duplicate(document.doc_id, document.text):
                dropped.add(document.locator, duplicate)
            else:
                n_bytes += len(document.text.encode())
                yield document
        if n_bytes >= source.max_bytes:
            return


def _read(source: Source) -> Iterator[Record | Refusal]:
    if isinstance(source, PackageSource):
        return _READERS[source.reader]()
    if isinstance(source, FolderSource):
        return folder.read(source)
    return hub.read(source)


def _natural(locator: str) -> list[tuple[bool, int, str]]:
    """Sorts part10 after part9."""
    pieces = re.split(r"(\d+)", locator)
    return [(piece.isdigit(), int(piece) if piece.isdigit() else 0, piece) for piece in pieces]


def _splits(kept: list[Record], config: CorpusConfig) -> dict[str, str]:
    domains: dict[str, list[str]] = {}
    for record in kept:
        domains.setdefault(record.domain, []).append(record.doc_id)
    return split_of(domains, config.valid_share, config.test_share, config.seed)


def _account(kept: list[Record], splits: dict[str, str], dropped: Dropped) -> dict[str, object]:
    domains: dict[str, dict[str, int]] = {}
    for record in kept:
        counts = domains.setdefault(record.domain, {"documents": 0, "bytes": 0})
        counts["documents"] += 1
        counts["bytes"] += len(record.text.encode())
        split = splits[record.doc_id]
        counts[split] = counts.get(split, 0) + 1
    return {
        "kept": domains,
        "dropped": {
            reason: {"documents": n, "locators": dropped.locators[reason]}
            for reason, n in sorted(dropped.counts.items())
        },
    }
