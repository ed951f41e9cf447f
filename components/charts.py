"""Pictures for pages as inline SVG: sharp at any size, a few kilobytes, dark when the page is.

    lines       curves against a common axis, named where they end, with reference lines
    bars        one quantity by name

Colours are the page's custom properties, so a picture follows the reader's light or dark setting.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from components.drawing import cut, px, svg
from components.numerals import number, short, ticks
from components.pages import Markup, joined
from components.shades import N_COLOURS

__all__ = ["Curve", "Reference", "bars", "lines"]

_LINE_HEIGHT = 15
_CHARACTER = 7.4
"""Pixels of an average character of a label, on the safe side."""


@dataclass(frozen=True)
class Curve:
    """One line: its name, its points, and whether the points themselves are worth a dot."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    dots: bool = False


@dataclass(frozen=True)
class Reference:
    """A horizontal line to compare with, such as what a unigram model reaches."""

    name: str
    y: float


@dataclass(frozen=True)
class _Frame:
    """Maps data to pixels inside the margins."""

    x: tuple[float, float]
    y: tuple[float, float]
    width: int
    height: int
    right: int
    left: int = 58
    top: int = 14
    bottom: int = 42

    def px(self, x: float) -> float:
        low, high = self.x
        return self.left + (x - low) / (high - low) * (self.width - self.left - self.right)

    def py(self, y: float) -> float:
        low, high = self.y
        return (
            self.height
            - self.bottom
            - (y - low) / (high - low) * (self.height - self.top - self.bottom)
        )


def lines(
    curves: Sequence[Curve],
    x_label: str,
    y_label: str,
    references: Sequence[Reference] = (),
    width: int = 720,
    height: int = 300,
) -> Markup:
    """Curves over a common axis. Points that are not finite are left out."""
    shown = [_finite(curve) for curve in curves]
    shown = [curve for curve in shown if curve.x]
    if not shown:
        return Markup('<p class="none">No measured points.</p>')
    ys = [y for curve in shown for y in curve.y] + [reference.y for reference in references]
    names = [curve.name for curve in shown] + [reference.name for reference in references]
    frame = _Frame(
        _padded([x for curve in shown for x in curve.x], share=0.0),
        _padded(ys, share=0.06),
        width,
        height,
        right=24 + int(_CHARACTER * max(map(len, names))),
    )
    ends = _spread(
        [(frame.py(curve.y[-1]), curve.name, i) for i, curve in enumerate(shown)]
        + [(frame.py(reference.y), reference.name, -1) for reference in references],
        floor=height - frame.bottom,
    )
    return svg(
        width,
        height,
        f"{y_label} against {x_label}",
        [
            _axes(frame, x_label, y_label),
            *(_reference(frame, reference) for reference in references),
            *(_path(frame, curve, i) for i, curve in enumerate(shown)),
            *(_end_label(frame, *end) for end in ends),
        ],
    )


def bars(
    items: Sequence[tuple[str, float]], unit: str, width: int = 720, name_width: int = 170
) -> Markup:
    """Horizontal bars, one a name, with the value at the end of each."""
    if not items:
        return Markup('<p class="none">Nothing to show.</p>')
    row, room = 26, width - name_width - 90
    largest = max(value for _, value in items) or 1.0
    parts = []
    for i, (name, value) in enumerate(items):
        y, length = i * row + 4, max(1.0, value / largest * room)
        parts.append(
            Markup(
                '<text x="{}" y="{}" text-anchor="end" font-size="13" class="strong">{}</text>'
                '<rect x="{}" y="{}" width="{}" height="{}" rx="3" style="fill:var(--c0)"/>'
                '<text x="{}" y="{}" font-size="12">{}</text>'
            ).format(
                name_width - 10,
                y + 14,
                cut(name, name_width / 7),
                name_width,
                y,
                px(length),
                row - 8,
                px(name_width + length + 8),
                y + 14,
                number(value),
            )
        )
    return svg(width, len(items) * row + 4, f"Bars, in {unit}", parts)


def _finite(curve: Curve) -> Curve:
    kept = [
        (x, y)
        for x, y in zip(curve.x, curve.y, strict=True)
        if math.isfinite(x) and math.isfinite(y)
    ]
    return Curve(curve.name, [x for x, _ in kept], [y for _, y in kept], curve.dots)


def _padded(values: Iterable[float], share: float) -> tuple[float, float]:
    listed = list(values)
    low, high = min(listed), max(listed)
    if low == high:
        room = abs(low) * 0.1 or 1.0
        return low - room, high + room
    return low - share * (high - low), high + share * (high - low)


def _axes(frame: _Frame, x_label: str, y_label: str) -> Markup:
    right, floor = frame.width - frame.right, frame.height - frame.bottom
    rows = [
        Markup(
            '<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>'
            '<text x="{}" y="{}" text-anchor="end" font-size="12">{}</text>'
        ).format(
            frame.left,
            right,
            px(frame.py(y)),
            px(frame.py(y)),
            frame.left - 8,
            px(frame.py(y) + 4),
            short(y),
        )
        for y in ticks(*frame.y)
    ]
    columns = [
        Markup('<text x="{}" y="{}" text-anchor="middle" font-size="12">{}</text>').format(
            px(frame.px(x)), floor + 18, short(x)
        )
        for x in ticks(*frame.x)
    ]
    labels = Markup(
        '<line class="axis" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/>'
        '<text x="{1}" y="{3}" text-anchor="end" font-size="12">{4}</text>'
        '<text x="{0}" y="11" font-size="12">{5}</text>'
    ).format(frame.left, right, floor, floor + 36, x_label, y_label)
    return joined([*rows, *columns, labels])


def _reference(frame: _Frame, reference: Reference) -> Markup:
    return Markup(
        '<line x1="{}" x2="{}" y1="{}" y2="{}" class="axis" stroke-dasharray="5 4"/>'
    ).format(
        frame.left,
        frame.width - frame.right,
        px(frame.py(reference.y)),
        px(frame.py(reference.y)),
    )


def _path(frame: _Frame, curve: Curve, index: int) -> Markup:
    points = [(px(frame.px(x)), px(frame.py(y))) for x, y in zip(curve.x, curve.y, strict=True)]
    line = Markup(
        '<polyline points="{}" fill="none" stroke-width="2" stroke-linejoin="round" '
        'style="stroke:var(--c{})"/>'
    ).format(" ".join(f"{x},{y}" for x, y in points), index % N_COLOURS)
    if not curve.dots and len(points) > 1:
        return line
    return line + joined(
        Markup('<circle cx="{}" cy="{}" r="3.5" style="fill:var(--c{})"/>').format(
            x, y, index % N_COLOURS
        )
        for x, y in points
    )


def _end_label(frame: _Frame, y: float, name: str, index: int) -> Markup:
    colour = "" if index < 0 else f"fill:var(--c{index % N_COLOURS});font-weight:600"
    return Markup('<text x="{}" y="{}" font-size="12.5" style="{}">{}</text>').format(
        frame.width - frame.right + 8, px(y + 4), colour, name
    )


def _spread(ends: list[tuple[float, str, int]], floor: float) -> list[tuple[float, str, int]]:
    """End labels from top to bottom, moved apart until none lies on another or under the floor."""
    placed: list[tuple[float, str, int]] = []
    for y, name, index in sorted(ends):
        free = placed[-1][0] + _LINE_HEIGHT if placed else y
        placed.append((max(y, free), name, index))
    excess = max(0.0, placed[-1][0] - floor)
    return [(y - excess, name, index) for y, name, index in placed]
