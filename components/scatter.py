"""Points in a plane with the sign of their group; names on hovering, and where there is room.

A point's area stands for its weight. Names are written from the heaviest point on; one that would
lie on another name or on a heavier point is left to the tooltip.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from components.drawing import CHARACTER, cut, legend, mark, px, svg
from components.pages import Markup

_MARGIN = 26
_LARGEST, _SMALLEST = 13.0, 3.5
_LINE = 14
_MAX_CHARACTERS = 24


@dataclass(frozen=True)
class Point:
    """Where it lies in the unit square, its name and group, and what hovering tells beside."""

    x: float
    y: float
    name: str
    group: str
    weight: float
    about: str


@dataclass(frozen=True)
class _Area:
    """A rectangle that is taken."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "_Area") -> bool:
        return not (
            self.right <= other.left
            or other.right <= self.left
            or self.bottom <= other.top
            or other.bottom <= self.top
        )


def scatter(
    points: Sequence[Point], title: str, n_names: int, width: int = 1080, height: int = 620
) -> Markup:
    """The picture with its legend. At most `n_names` names are written."""
    if not points:
        return Markup('<p class="none">Nothing to show.</p>')
    groups = {group: i for i, group in enumerate(sorted({point.group for point in points}))}
    heaviest = max(point.weight for point in points) or 1.0
    ordered = sorted(points, key=lambda point: (-point.weight, point.name))
    radius = [
        max(_SMALLEST, _LARGEST * math.sqrt(max(0.0, point.weight) / heaviest)) for point in ordered
    ]
    at = [_pixels(point, width, height) for point in ordered]
    marks = [
        Markup('<g class="dot"><title>{} · {} · {}</title>{}</g>').format(
            point.name, point.group, point.about, mark(groups[point.group], x, y, r)
        )
        for point, (x, y), r in zip(ordered, at, radius, strict=True)
    ]
    names = _names([point.name for point in ordered], at, radius, n_names, width)
    return svg(width, height, title, [*marks, *names]) + legend(
        (i, group) for group, i in groups.items()
    )


def _pixels(point: Point, width: int, height: int) -> tuple[float, float]:
    return (
        _MARGIN + point.x * (width - 2 * _MARGIN),
        height - _MARGIN - point.y * (height - 2 * _MARGIN),
    )


def _names(
    names: Sequence[str], at: Sequence[tuple[float, float]], radius: Sequence[float],
    n_names: int, width: int,
) -> list[Markup]:  # fmt: skip
    """Names over their points, where nothing heavier is in the way."""
    taken: list[_Area] = []
    written: list[Markup] = []
    for name, (x, y), r in zip(names, at, radius, strict=True):
        if len(written) == n_names:
            break
        shown = cut(name, _MAX_CHARACTERS)
        half = len(shown) * CHARACTER / 2
        middle = min(max(x, half + 2), width - half - 2)
        room = _Area(middle - half, y - r - _LINE - 1, middle + half, y - r - 1)
        point = _Area(x - r, y - r, x + r, y + r)
        if room.top >= 0 and not any(room.meets(other) for other in taken):
            written.append(_name(shown, middle, y - r - 4))
            taken.append(room)
        taken.append(point)
    return written


def _name(text: str, x: float, y: float) -> Markup:
    return Markup(
        '<text x="{}" y="{}" text-anchor="middle" font-size="12" class="strong halo">{}</text>'
    ).format(px(x), px(y), text)
