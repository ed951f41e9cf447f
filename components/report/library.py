"""The concept library: what the network's vocabulary of meaning is, and how it lies in the text."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from components import contracts
from components.charts import bars
from components.library import Concept, Library, open_library
from components.numerals import number
from components.pages import Cell, Column, Fact, Markup, Section, cards, figure, table
from components.projection import Projection, project
from components.report.config import ReportConfig
from components.report.inputs import read_table
from components.scatter import Point, scatter
from components.treemap import Tile, treemap

_PLACED = {
    "umap": "UMAP: neighbours lie near each other, distances between far groups mean little",
    "pca": "the two directions of most variance, which blur whatever lies in the others",
}


def section(concepts: Path, labels: Path, config: ReportConfig) -> Section:
    """Areas by the labels that each concept has, a map, the largest, and what chunks carry."""
    library = open_library(concepts)
    pairs = read_table(labels, contracts.LABELS, "chunk_id", "concept_id")
    chunks_of = Counter(pairs.column("concept_id").to_pylist())
    labels_of = Counter(pairs.column("chunk_id").to_pylist())
    largest = sorted(
        library.concepts, key=lambda each: (-chunks_of[each.concept_id], each.concept_id)
    )
    per_chunk = Counter(labels_of.values())
    facts = cards(
        [
            Fact("concepts", len(largest)),
            Fact("branches of the taxonomy", len({each.parent for each in largest})),
            Fact("labelled chunks", len(labels_of)),
            Fact("labels per chunk", pairs.num_rows / max(1, len(labels_of)), "mean"),
        ]
    )
    return Section(
        "library", "The concept library",
        "Found in the text by tagging a sample, merging the tags, and teaching an annotator to see "
        "them everywhere. These names are what explanations are made of.",
        facts
        + _areas(largest[: config.n_tiles], len(largest), chunks_of)
        + _map(library, largest[: config.n_mapped], chunks_of, config)
        + _largest(largest[: config.n_concepts], chunks_of)
        + figure(
            bars([(str(n), float(per_chunk[n])) for n in sorted(per_chunk)], "chunks"),
            "Chunks by the number of concepts they carry.",
        ),
    )  # fmt: skip


def _areas(shown: Sequence[Concept], n: int, chunks_of: Counter[int]) -> Markup:
    tiles = [Tile(each.name, each.parent, chunks_of[each.concept_id]) for each in shown]
    return figure(
        treemap(tiles, "chunks", width=1080, height=620),
        f"The {_of(len(tiles), n)}, under the branches of the taxonomy. Area within a branch and "
        f"number: labelled chunks; over a branch stands the sum of those shown.",
    )


def _map(
    library: Library, shown: Sequence[Concept], chunks_of: Counter[int], config: ReportConfig
) -> Markup:
    rows = [each.concept_id for each in shown]
    placed = project(library.centroids_KD[rows], config.map, config.seed)
    points = [
        Point(
            float(x), float(y), each.name, each.parent, float(chunks_of[each.concept_id]),
            f"{number(chunks_of[each.concept_id])} chunks · {each.description}",
        )
        for each, (x, y) in zip(shown, placed.points_N2.tolist(), strict=True)
    ]  # fmt: skip
    return figure(
        scatter(points, "Map of the concepts", n_names=config.n_names),
        _about_the_map(placed, _of(len(rows), len(library.concepts))),
    )


def _about_the_map(placed: Projection, which: str) -> str:
    survived = (
        f" Of the {placed.n_neighbours} nearest of each by meaning, {placed.kept:.0%} are among "
        f"its {placed.n_neighbours} nearest here."
        if placed.n_neighbours
        else ""
    )
    return (
        f"The {which}, placed by the mean of their tags in the encoder's space; "
        f"{_PLACED[placed.method]}.{survived} Size: labelled chunks. Point at one for its name."
    )


def _largest(shown: Sequence[Concept], chunks_of: Counter[int]) -> Markup:
    cells: list[list[Cell]] = [
        [each.name, each.description, each.kind, each.parent, 100 * each.prevalence,
         each.coherence, chunks_of[each.concept_id]]
        for each in shown
    ]  # fmt: skip
    columns = [
        Column("concept"), Column("what it means"), Column("kind"), Column("branch"),
        Column("prevalence", "% of the sample"), Column("coherence", "mean cosine"),
        Column("labelled", "chunks"),
    ]  # fmt: skip
    return table(columns, cells)


def _of(n_shown: int, n: int) -> str:
    return f"{n} concepts" if n_shown == n else f"{n_shown} largest of {n} concepts"
