"""The text everything rests on: how much, of what kind, under which licence."""

from collections import Counter, defaultdict
from pathlib import Path

from components import contracts
from components.charts import bars
from components.pages import Cell, Column, Fact, Markup, Section, cards, figure, side_by_side, table
from components.report.inputs import read_table

_SPLITS = ("train", "valid", "test")


def section(documents: Path) -> Section:
    """Documents by domain and split, and by source."""
    columns = read_table(
        documents, contracts.DOCUMENTS, "domain", "split", "source", "source_version", "licence",
        "text",
    ).to_pydict()  # fmt: skip
    n_bytes = [len(text.encode()) for text in columns["text"]]
    by_domain: Counter[str] = Counter()
    for domain, size in zip(columns["domain"], n_bytes, strict=True):
        by_domain[domain] += size
    body = cards(
        [
            Fact("documents", len(n_bytes)),
            Fact("text", sum(n_bytes) / 1e6, "MB"),
            Fact("domains", len(by_domain)),
            Fact("sources", len(set(columns["source"]))),
        ]
    ) + side_by_side(
        figure(
            bars([(name, size / 1e6) for name, size in by_domain.most_common()], "MB", width=520),
            "Text by domain, in MB.",
        ),
        _domains(columns["domain"], columns["split"]),
    )
    return Section(
        "corpus", "The text",
        "What the network read, and what it was kept from reading: valid and test documents are "
        "chosen by a hash of their text and share none with train.",
        body + _sources(columns, n_bytes),
    )  # fmt: skip


def _domains(domains: list[str], splits: list[str]) -> Markup:
    counts = Counter(zip(domains, splits, strict=True))
    rows: list[list[Cell]] = [
        [domain, *(counts[(domain, split)] for split in _SPLITS)] for domain in sorted(set(domains))
    ]
    return table([Column("domain"), *(Column(split, "documents") for split in _SPLITS)], rows)


def _sources(columns: dict[str, list[str]], n_bytes: list[int]) -> Markup:
    sizes: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    names = ("source", "source_version", "domain", "licence")
    for key, size in zip(zip(*(columns[n] for n in names), strict=True), n_bytes, strict=True):
        sizes[key].append(size)
    rows: list[list[Cell]] = [
        [*key, len(found), sum(found) / 1e6] for key, found in sorted(sizes.items())
    ]
    heads = [Column("source"), Column("version"), Column("domain"), Column("licence")]
    return table([*heads, Column("documents"), Column("text", "MB")], rows)
