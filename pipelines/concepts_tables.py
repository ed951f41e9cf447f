"""What `clearstory concepts` shows a person. Text from data reaches the terminal as plain text."""

import sys
import unicodedata
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from components.catalogue.difference import Difference, Moved, Pair
from components.catalogue.examples import Example
from components.catalogue.history import Step
from components.catalogue.search import Hit
from components.library import Concept

_MAX_CHARS = 300
_PLAIN_WIDTH = 160
"""Columns of what is written to a file or a pipe."""


def hits(found: Sequence[Hit], name: str) -> None:
    """Concepts that were found, best first."""
    table = _table(f"Concepts of {name}", ("id", "right"), ("name", "left"), ("score", "right"),
                   ("cosine", "right"), ("words in", "left"), ("branch", "left"),
                   ("% of sample", "right"))  # fmt: skip
    for hit in found:
        concept = hit.concept
        table.add_row(
            str(concept.concept_id), plain(concept.name), f"{hit.score:.3f}",
            "–" if hit.cosine is None else f"{hit.cosine:.3f}", hit.place or "–",
            plain(concept.parent), f"{100 * concept.prevalence:.2f}",
        )  # fmt: skip
    console().print(table)


def card(
    concept: Concept,
    near: Sequence[tuple[Concept, float]],
    steps: Sequence[Step],
    examples: Sequence[Example],
) -> None:
    """One concept with what belongs to it."""
    screen = console()
    screen.print(Text(f"{concept.concept_id}  {plain(concept.name)}", style="bold"))
    for label, value in (
        ("", concept.description),
        ("kind", concept.kind),
        ("branch", concept.parent),
        ("prevalence", f"{concept.prevalence:.2%} of the sample, {concept.n_chunks} chunks"),
        ("coherence", f"{concept.coherence:.3f}, mean cosine of its tags to their centroid"),
        ("tags", ", ".join(concept.members)),
        ("nearest", ", ".join(f"{other.name} ({cosine:.2f})" for other, cosine in near) or "–"),
    ):
        screen.print(Text(f"{label + ': ' if label else ''}{plain(value)}"))
    for step in steps:
        screen.print(Text(plain(f"history: {step.action} {', '.join(step.names)}: {step.reason}")))
    for example in examples:
        about = plain(f"{example.title} · {example.source} · {example.licence}")
        text = plain(example.text)
        screen.print(Text(f"\nchunk {example.chunk_id}, score {example.score:.3f}, {about}"))
        screen.print(Text(text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]}…"))


def differences(found: Difference, before: str, after: str, n: int) -> None:
    """Counts, then at most n of each sort."""
    screen = console()
    table = _table(f"From {before} to {after}", ("", "left"), ("concepts", "right"))
    for sort, concepts in vars(found).items():
        table.add_row(sort, str(len(concepts)))
    screen.print(table)
    for sort, concepts in vars(found).items():
        if sort == "same" or not concepts or n == 0:
            continue
        screen.print(Text(f"\n{sort}", style="bold"))
        for each in concepts[:n]:
            screen.print(Text(f"  {plain(_line(sort, each))}"))
        if len(concepts) > n:
            screen.print(Text(f"  and {len(concepts) - n} more; --n {len(concepts)} lists all"))


def as_data(found: Difference) -> dict[str, Any]:
    """The same for a program: counts, and every concept by its ids and names."""
    sorts = vars(found)
    return {
        "counts": {sort: len(concepts) for sort, concepts in sorts.items()},
        **{sort: [_data(each) for each in concepts] for sort, concepts in sorts.items()},
    }


def _line(sort: str, each: Pair | Moved | Concept) -> str:
    if isinstance(each, Pair):
        cosine = "" if each.cosine is None else f", cosine {each.cosine:.2f}"
        name = each.before.name if sort == "changed" else f"{each.before.name} → {each.after.name}"
        return f"{name}: {each.overlap:.0%} of tags in common{cosine}"
    if isinstance(each, Moved):
        way = "into" if sort == "merged" else "out of"
        return f"{each.concept.name} {way} {each.other.name}: {each.share:.0%} of its tags"
    return each.name


def _data(each: Pair | Moved | Concept) -> dict[str, Any]:
    if isinstance(each, Pair):
        return {"before": _named(each.before), "after": _named(each.after),
                "overlap": each.overlap, "cosine": each.cosine}  # fmt: skip
    if isinstance(each, Moved):
        return {"concept": _named(each.concept), "other": _named(each.other), "share": each.share}
    return _named(each)


def _named(concept: Concept) -> dict[str, Any]:
    return {"concept_id": concept.concept_id, "name": concept.name}


def _table(title: str, *columns: tuple[str, Any]) -> Table:
    table = Table(title=Text(title))
    for name, side in columns:
        table.add_column(name, justify=side)
    return table


def console() -> Console:
    """As wide as the terminal; wide where it is written to a file."""
    width = None if sys.stdout.isatty() else _PLAIN_WIDTH
    return Console(width=width, markup=False, highlight=False, soft_wrap=True)


def plain(text: str) -> str:
    """One line without control characters, which a terminal would obey."""
    return "".join(
        " " if character.isspace() else character
        for character in text
        if character.isspace() or unicodedata.category(character) not in ("Cc", "Cf")
    )
