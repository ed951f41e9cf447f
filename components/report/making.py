"""How the library was made: the choice of k, and what was dropped and merged on the way."""

from pathlib import Path

from components.catalogue.history import Origin, origin, reasons
from components.charts import Curve, lines
from components.flow import Loss, flow
from components.library import open_library
from components.numerals import number
from components.pages import Cell, Column, Fact, Markup, Section, cards, figure, note, table


def section(concepts: Path) -> Section:
    """From tags to clusters to concepts."""
    made = origin(open_library(concepts))
    facts = cards(
        [
            Fact("tagged chunks", made.n_tagged_chunks, "", "the sample the library is made from"),
            Fact("different tags", made.n_tags),
            Fact("clusters", made.n_clusters, "", "k at the knee of the curve"),
            Fact("concepts", made.n_concepts),
        ]
    )
    return Section(
        "making", "How the library was made",
        f"Tags that mean the same lie together in the space of the encoder {made.encoder}. They "
        f"are clustered there; weak clusters are dropped, the others named, and names that cannot "
        f"be told apart are merged.",
        facts + _by_k(made) + _what_became(made),
    )  # fmt: skip


def _by_k(made: Origin) -> Markup:
    points = sorted(made.coherence_curve, key=lambda point: point.k)
    drawn = lines(
        [Curve("coherence", [p.k for p in points], [p.coherence for p in points], dots=True)],
        "clusters (k)", "mean cosine to the centroid", height=260,
    )  # fmt: skip
    # Clusters that lost all their tags to others are none, so there may be fewer than k.
    taken = min((p.k for p in points if p.k >= made.n_clusters), default=made.n_clusters)
    rows: list[list[Cell]] = []
    before: float | None = None
    for point in points:
        gain = None if before is None else point.coherence - before
        rows.append([point.k, point.coherence, gain, "taken" if point.k == taken else ""])
        before = point.coherence
    columns = [
        Column("k", "clusters"), Column("coherence", "mean cosine"),
        Column("gain", "over the row above"), Column(""),
    ]  # fmt: skip
    return figure(
        drawn,
        "Coherence of a clustering: the mean cosine of tags to the centroid of their cluster, "
        "weighted by chunks. It rises with k whatever the tags are; k is taken where the curve "
        "stands highest over the line between its ends.",
    ) + table(columns, rows)


def _what_became(made: Origin) -> Markup:
    told = reasons(made.history)
    lost = [reason for reason in told if reason.n_lost]
    n_left = made.n_clusters - sum(reason.n_lost for reason in lost)
    if n_left != made.n_concepts:
        picture: Markup = note(
            f"The history leaves {number(n_left)} of {number(made.n_clusters)} clusters, the "
            f"library has {number(made.n_concepts)} concepts: it does not tell all that was done."
        )
    else:
        picture = figure(
            flow("clusters", made.n_clusters,
                 [Loss(_did(reason.action, reason.why), reason.n_lost) for reason in lost],
                 "concepts", width=1080),
            "What became of the clusters. Widths are in proportion.",
        )  # fmt: skip
    rows: list[list[Cell]] = [
        [reason.action, reason.why, reason.n_steps, reason.n_lost] for reason in told
    ]
    columns = [
        Column("step"), Column("why"), Column("times"), Column("fewer", "clusters or concepts"),
    ]  # fmt: skip
    return picture + table(columns, rows)


def _did(action: str, why: str) -> str:
    """`drop` and `merge` as what happened."""
    past = {"drop": "dropped", "merge": "merged away"}.get(action, action)
    return f"{past}: {why}"
