"""The concept library: what the network's vocabulary of meaning is, and how it lies in the text."""

from collections import Counter
from pathlib import Path

from components import contracts
from components.charts import Tile, bars, treemap
from components.pages import Cell, Column, Fact, Markup, Section, cards, figure, table
from components.report.config import ReportConfig
from components.report.inputs import read_table

_COLUMNS = ("concept_id", "name", "description", "kind", "taxonomy", "prevalence", "n_chunks")


def section(concepts: Path, labels: Path, config: ReportConfig) -> Section:
    """Areas by the labels that each concept has, then the largest and what chunks carry."""
    rows = read_table(concepts, contracts.CONCEPTS, *_COLUMNS).to_pylist()
    pairs = read_table(labels, contracts.LABELS, "chunk_id", "concept_id")
    chunks_of = Counter(pairs.column("concept_id").to_pylist())
    labels_of = Counter(pairs.column("chunk_id").to_pylist())
    rows.sort(key=lambda row: (-chunks_of[row["concept_id"]], row["concept_id"]))
    per_chunk = Counter(labels_of.values())
    facts = cards(
        [
            Fact("concepts", len(rows)),
            Fact("branches of the taxonomy", len({_branch(row["taxonomy"]) for row in rows})),
            Fact("labelled chunks", len(labels_of)),
            Fact("labels per chunk", pairs.num_rows / max(1, len(labels_of)), "mean"),
        ]
    )
    tiles = [
        Tile(row["name"], _branch(row["taxonomy"]), chunks_of[row["concept_id"]])
        for row in rows[: config.n_tiles]
    ]
    return Section(
        "library", "The concept library",
        "Found in the text by tagging a sample, merging the tags, and teaching an annotator to see "
        "them everywhere. These names are what explanations are made of.",
        facts
        + figure(
            treemap(tiles, "chunks", width=1080),
            f"The {len(tiles)} largest of {len(rows)} concepts. Area: labelled chunks. Colour: "
            f"branch of the taxonomy.",
        )
        + _largest(rows[: config.n_concepts], chunks_of)
        + figure(
            bars([(str(n), float(per_chunk[n])) for n in sorted(per_chunk)], "chunks"),
            "Chunks by the number of concepts they carry.",
        ),
    )  # fmt: skip


def _largest(rows: list[dict[str, Cell]], chunks_of: Counter[int]) -> Markup:
    cells: list[list[Cell]] = [
        [row["name"], row["description"], row["kind"], row["taxonomy"],
         _percent(row["prevalence"]), chunks_of[_id(row["concept_id"])]]
        for row in rows
    ]  # fmt: skip
    columns = [
        Column("concept"), Column("what it means"), Column("kind"), Column("taxonomy"),
        Column("prevalence", "% of the sample"), Column("labelled", "chunks"),
    ]  # fmt: skip
    return table(columns, cells)


def _branch(taxonomy: str) -> str:
    """The first step of a taxonomy's path."""
    for mark in (" > ", ">", "/", " – "):
        taxonomy = taxonomy.split(mark)[0]
    return taxonomy.strip() or "without a branch"


def _percent(share: Cell) -> Cell:
    return 100 * share if isinstance(share, float) else share


def _id(value: Cell) -> int:
    assert isinstance(value, int), f"concept_id is {value!r}"
    return value
