"""Squarified treemap: rectangles of given areas, as near to squares as they come.

Tiles are laid along the shorter side of the room that is left, row by row; a row is closed as soon
as one more tile would make its worst rectangle longer (Bruls, Huizing and van Wijk, 2000).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


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


def squarify(tiles: Iterable[Tile], width: float, height: float) -> list[tuple[Tile, Box]]:
    """Every tile of positive weight with its rectangle; together they fill the whole room."""
    kept = [tile for tile in tiles if tile.weight > 0]
    totals: dict[str, float] = {}
    for tile in kept:
        totals[tile.group] = totals.get(tile.group, 0.0) + tile.weight
    groups = sorted(totals, key=lambda group: (-totals[group], group))
    rooms = _boxes([totals[group] for group in groups], Box(0.0, 0.0, width, height))
    placed: list[tuple[Tile, Box]] = []
    for group, room in zip(groups, rooms, strict=True):
        members = sorted(
            (tile for tile in kept if tile.group == group),
            key=lambda tile: (-tile.weight, tile.name),
        )
        boxes = _boxes([tile.weight for tile in members], room)
        placed.extend(zip(members, boxes, strict=True))
    return placed


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
