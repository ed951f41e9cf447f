"""HTML pages that open from a folder: no server, no script, no request to anywhere.

One page is one string: styles inline, pictures as inline SVG (`components/charts.py`) or base64
PNG, light and dark by the reader's own setting. Everything that is not `Markup` is escaped on its
way in, because corpus text and generated text end up here.

    page(title, sections)    section(title, lead, body...)    table(columns, rows)    cards(facts)
"""

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup, escape

from components.numerals import aligned, number
from components.page_style import LAYOUT, PALETTE, PICTURES

__all__ = ["Cell", "Markup", "escape"]

Cell = str | int | float | None | Markup
"""What a table shows: text is escaped, numbers are formatted, None is a dash, Markup stays."""


@dataclass(frozen=True)
class Column:
    """Head of a table column. The unit stands under the name, once, not in every cell."""

    name: str
    unit: str = ""


@dataclass(frozen=True)
class Fact:
    """One number of the summary at a page's top, with its unit and what to compare it with."""

    name: str
    value: Cell
    unit: str = ""
    note: str = ""


@dataclass(frozen=True)
class Section:
    """A heading, one sentence that says what the reader is looking at, and the picture."""

    anchor: str
    title: str
    lead: str
    body: Markup


def page(
    title: str, subtitle: str, sections: Sequence[Section], top: Markup, style: str = ""
) -> str:
    """A whole page. `top` stands above the table of contents: the answer before the evidence.

    `style` is what `components/page_style.py` has beyond every page's own.
    """
    contents = joined(
        Markup('<a href="#{}">{}</a>').format(section.anchor, section.title) for section in sections
    )
    bodies = joined(
        Markup('<section id="{}"><h2>{}</h2><p class="lead">{}</p>{}</section>').format(
            section.anchor, section.title, section.lead, section.body
        )
        for section in sections
    )
    return str(
        Markup(
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<meta name="color-scheme" content="light dark"><title>{title}</title>'
            "<style>{css}</style></head><body><header>{mark}<h1>{title}</h1><p>{subtitle}</p>"
            "</header>{top}<nav>{contents}</nav><main>{bodies}</main></body></html>\n"
        ).format(
            title=title,
            css=Markup(PALETTE + LAYOUT + PICTURES + style),
            mark=_mark(),
            subtitle=subtitle,
            top=top,
            contents=contents,
            bodies=bodies,
        )
    )


def fragment(body: Markup) -> str:
    """A part of a page for a notebook: its pictures' style comes along, the page's does not."""
    return str(Markup("<style>{}</style>{}").format(Markup(PALETTE + PICTURES), body))


def table(columns: Sequence[Column], rows: Iterable[Sequence[Cell]], caption: str = "") -> Markup:
    """A table whose numbers line up; wide ones scroll inside their own frame."""
    cells = [list(row) for row in rows]
    kinds = [_kind([row[i] for row in cells]) for i in range(len(columns))]
    texts = [_texts([row[i] for row in cells]) for i in range(len(columns))]
    head = joined(
        Markup("<th{}>{}<small>{}</small></th>").format(kind, column.name, column.unit)
        for kind, column in zip(kinds, columns, strict=True)
    )
    body = joined(
        Markup("<tr>{}</tr>").format(
            joined(
                Markup("<td{}>{}</td>").format(kind, column[i])
                for kind, column in zip(kinds, texts, strict=True)
            )
        )
        for i in range(len(cells))
    )
    if not body:
        body = Markup('<tr><td colspan="{}" class="none">nothing</td></tr>').format(len(columns))
    title = Markup("<caption>{}</caption>").format(caption) if caption else Markup()
    return Markup(
        '<div class="scroll"><table>{}<thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>'
    ).format(title, head, body)


def cards(facts: Iterable[Fact]) -> Markup:
    """Numbers to remember, as a row of cards."""
    return Markup('<dl class="cards">{}</dl>').format(
        joined(
            Markup("<div><dt>{}</dt><dd>{}<small>{}</small></dd><p>{}</p></div>").format(
                fact.name, text_of(fact.value), fact.unit, fact.note
            )
            for fact in facts
        )
    )


def figure(picture: Markup, caption: str) -> Markup:
    """A picture with the sentence that says how to read it."""
    return Markup("<figure>{}<figcaption>{}</figcaption></figure>").format(picture, caption)


def png(path: Path, description: str) -> Markup:
    """A PNG file inside the page."""
    return Markup('<img alt="{}" src="data:image/png;base64,{}">').format(
        description, base64.b64encode(path.read_bytes()).decode()
    )


def note(text: str) -> Markup:
    """A caveat the reader must not miss."""
    return Markup('<p class="note">{}</p>').format(text)


def quote(text: str) -> Markup:
    """Text of a document or of the network, line breaks kept."""
    return Markup("<blockquote>{}</blockquote>").format(text)


def code(text: str) -> Markup:
    """An identifier or a digest, in the monospaced face."""
    return Markup("<code>{}</code>").format(text)


def unbroken(text: str) -> Markup:
    """Text that stays on one line, such as an interval in a table."""
    return Markup('<span class="unbroken">{}</span>').format(text)


def side_by_side(*parts: Markup) -> Markup:
    """Parts in columns on a wide screen, under each other on a narrow one."""
    return Markup('<div class="row">{}</div>').format(
        joined(Markup("<div>{}</div>").format(part) for part in parts)
    )


def folded(title: str, body: Markup, *, is_open: bool = False) -> Markup:
    """Detail behind a disclosure triangle, which needs no script."""
    state = Markup(" open") if is_open else Markup()
    return Markup("<details{}><summary>{}</summary>{}</details>").format(state, title, body)


def badge(text: str, kind: str) -> Markup:
    """A word in a coloured pill; `kind` is `good`, `bad` or `plain`."""
    return Markup('<span class="badge {}">{}</span>').format(kind, text)


def joined(parts: Iterable[Markup]) -> Markup:
    """Parts after each other."""
    return Markup("").join(parts)


def text_of(value: Cell) -> Markup:
    """What a table or a card shows for a value."""
    if value is None:
        return Markup("–")
    if isinstance(value, int | float):
        return escape(number(value))
    return escape(value)


def _mark() -> Markup:
    """Five arched windows under a roof: a clearstory."""
    windows = joined(
        Markup('<path d="M{} 34V12a8 8 0 0 1 16 0V34Z" style="fill:var(--c{})"/>').format(21 * i, i)
        for i in range(5)
    )
    return Markup(
        '<svg width="100" height="34" viewBox="0 0 100 34" aria-hidden="true">{}</svg>'
    ).format(windows)


def _kind(column: Sequence[Cell]) -> Markup:
    """The class of a column of numbers, missing ones among them."""
    numbers = [value for value in column if isinstance(value, int | float)]
    only = numbers and len(numbers) == len([value for value in column if value is not None])
    return Markup(' class="number"') if only else Markup()


def _texts(column: Sequence[Cell]) -> list[Markup]:
    numbers = [value for value in column if isinstance(value, int | float)]
    shown = iter(aligned(numbers))
    return [
        escape(next(shown)) if isinstance(value, int | float) else text_of(value)
        for value in column
    ]
