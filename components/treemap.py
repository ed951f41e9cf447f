"""Squarified treemap: rectangles of given areas, as near to squares as they come.

    squarify    tiles -> rectangles, those of one group together
    treemap     the picture, with a heading and a count over each group

Tiles are laid along the shorter side of the room that is left, row by row; a row is closed as soon
as one more tile would make its worst rectangle longer (Bruls, Huizing and van Wijk, 2000).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from components.drawing import CHARACTER, cut, px, svg
from components.numerals import number
from components.pages import Markup, joined
from components.shades import N_COLOURS

_HEADING = 22
"""Pixels over a group's tiles for its name."""

_LINE = 15
_LEAST_NAME = 5
"""Characters of a name that are worth showing."""

_BOLD = 7.5
"""Pixels of an average bold character at 12 pixels of height, on the safe side."""


@dataclass(frozen=True)
class Tile:
    """What an area stands for. Tiles of one group lie together, the heaviest group first."""

    name: str
    group: str
    weight: float


@dataclass(frozen=True)
class Box:
    """A rectangle, from its upper left corner."""

    x: float
    y: float
    width: float
    height: float

    def below(self, heading: float) -> "Box":
        """What is left under a heading; all of it where that would take more than a third."""
        if self.height < 3 * heading:
            return self
        return Box(self.x, self.y + heading, self.width, self.height - heading)


@dataclass(frozen=True)
class Room:
    """A group's tiles with their rectangles, and the rectangle around them and their heading."""

    group: str
    box: Box
    tiles: tuple[tuple[Tile, Box], ...]

    @property
    def weight(self) -> float:
        return sum(tile.weight for tile, _ in self.tiles)


def treemap(tiles: Sequence[Tile], unit: str, width: int = 960, height: int = 420) -> Markup:
    """Areas proportional to weights within a group, under the group's name and sum.

    Groups have the colours that they have on a map (`components/scatter.py`).
    """
    rooms = squarify(tiles, width, height, heading=_HEADING)
    colour = {group: i % N_COLOURS for i, group in enumerate(sorted({t.group for t in tiles}))}
    return svg(
        width,
        height,
        f"Areas in {unit}",
        [_drawn(room, colour[room.group], unit) for room in rooms],
    )


def squarify(
    tiles: Iterable[Tile], width: float, height: float, heading: float = 0.0
) -> list[Room]:
    """Every tile of positive weight with its rectangle; together they fill the whole room."""
    kept = [tile for tile in tiles if tile.weight > 0]
    totals: dict[str, float] = {}
    for tile in kept:
        totals[tile.group] = totals.get(tile.group, 0.0) + tile.weight
    groups = sorted(totals, key=lambda group: (-totals[group], group))
    boxes = _boxes([totals[group] for group in groups], Box(0.0, 0.0, width, height))
    rooms = []
    for group, box in zip(groups, boxes, strict=True):
        members = sorted(
            (tile for tile in kept if tile.group == group),
            key=lambda tile: (-tile.weight, tile.name),
        )
        inner = _boxes([tile.weight for tile in members], box.below(heading))
        rooms.append(Room(group, box, tuple(zip(members, inner, strict=True))))
    return rooms


def _boxes(weights: Sequence[float], room: Box) -> list[Box]:
    """Rectangles in the order of `weights`, which must fall."""
    scale = room.width * room.height / sum(weights) if weights else 0.0
    areas = [weight * scale for weight in weights]
    boxes: list[Box] = []
    while areas:
        side = min(room.width, room.height)
        n_row = 1
        while n_row < len(areas) and _worst(areas[: n_row + 1], side) <= _worst(
            areas[:n_row], side
        ):
            n_row += 1
        row, room = _lay(areas[:n_row], room)
        boxes.extend(row)
        areas = areas[n_row:]
    return boxes


def _worst(areas: Sequence[float], side: float) -> float:
    """The longest proportion among rectangles that share one row along `side`."""
    depth = sum(areas) / side
    return max(max(depth * depth / area, area / (depth * depth)) for area in areas)


def _lay(areas: Sequence[float], room: Box) -> tuple[list[Box], Box]:
    """One row along the shorter side, and the room that is left."""
    upright = room.width >= room.height
    depth = sum(areas) / (room.height if upright else room.width)
    row, offset = [], 0.0
    for area in areas:
        length = area / depth
        if upright:
            row.append(Box(room.x, room.y + offset, depth, length))
        else:
            row.append(Box(room.x + offset, room.y, length, depth))
        offset += length
    if upright:
        return row, Box(room.x + depth, room.y, room.width - depth, room.height)
    return row, Box(room.x, room.y + depth, room.width, room.height - depth)


def _drawn(room: Room, colour: int, unit: str) -> Markup:
    return _heading(room, unit) + joined(
        Markup(
            '<g><title>{}</title><rect x="{}" y="{}" width="{}" height="{}" rx="3" '
            'style="fill:var(--c{})"/>{}</g>'
        ).format(
            f"{tile.name} · {room.group} · {number(tile.weight)} {unit}",
            px(box.x + 1),
            px(box.y + 1),
            px(max(0.0, box.width - 2)),
            px(max(0.0, box.height - 2)),
            colour,
            _label(tile, box),
        )
        for tile, box in room.tiles
    )


def _heading(room: Room, unit: str) -> Markup:
    if room.box.below(_HEADING) == room.box:
        return Markup()
    title = f"{room.group} · {len(room.tiles)} concepts · {number(room.weight)} {unit}"
    n_characters = int((room.box.width - 6) / CHARACTER)
    weight = f" · {number(room.weight)}"
    name = cut(room.group, n_characters - len(weight)) + weight
    if n_characters - len(weight) < _LEAST_NAME:
        name = cut(room.group, n_characters)
    return Markup(
        '<g><title>{}</title><text x="{}" y="{}" font-size="12" class="strong">{}</text></g>'
    ).format(title, px(room.box.x + 3), px(room.box.y + 16), name)


def _label(tile: Tile, box: Box) -> Markup:
    """The name on as many lines as fit, and under it the weight."""
    characters = int((box.width - 12) / _BOLD)
    n_lines = int((box.height - 6) / _LINE)
    if characters < _LEAST_NAME or n_lines < 1:
        return Markup()
    lines = _wrapped(tile.name, characters, max(1, min(3, n_lines - 1)))
    weight = [number(tile.weight)] if len(lines) < n_lines else []
    rows = [(line, "on-fill") for line in lines] + [(line, "on-fill light") for line in weight]
    return joined(
        Markup('<text x="{}" y="{}" font-size="12" class="{}">{}</text>').format(
            px(box.x + 7), px(box.y + 17 + _LINE * i), kind, line
        )
        for i, (line, kind) in enumerate(rows)
    )


def _wrapped(text: str, characters: int, n_lines: int) -> list[str]:
    """Words over at most so many lines; what does not fit is cut."""
    lines: list[str] = []
    words = text.split()
    while words and len(lines) < n_lines - 1:
        line = words.pop(0)
        while words and len(f"{line} {words[0]}") <= characters:
            line = f"{line} {words.pop(0)}"
        lines.append(cut(line, characters))
    return [*lines, cut(" ".join(words), characters)] if words else lines
