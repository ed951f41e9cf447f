"""Areas say how much; headings say of what."""

import re
import xml.etree.ElementTree as ET

import pytest

from components.treemap import Tile, squarify, treemap


def test_tiles_fill_the_room_in_proportion():
    tiles = [Tile(str(i), "ab"[i % 2], float(i)) for i in range(8)]
    placed = [pair for room in squarify(tiles, 60.0, 30.0) for pair in room.tiles]
    assert len(placed) == 7  # a tile of no weight has no area
    total = sum(tile.weight for tile, _ in placed)
    for tile, box in placed:
        assert box.width * box.height == pytest.approx(1800.0 * tile.weight / total)
    assert max(box.x + box.width for _, box in placed) == pytest.approx(60.0)
    assert max(box.y + box.height for _, box in placed) == pytest.approx(30.0)


def test_under_a_heading_tiles_keep_their_proportion_and_leave_its_room():
    (room,) = squarify([Tile("a", "g", 3.0), Tile("b", "g", 1.0)], 60.0, 40.0, heading=10.0)
    areas = {tile.name: box.width * box.height for tile, box in room.tiles}
    assert areas == pytest.approx({"a": 1350.0, "b": 450.0})
    assert min(box.y for _, box in room.tiles) == 10.0


def test_a_room_too_low_for_a_heading_is_all_tiles():
    (room,) = squarify([Tile("a", "g", 1.0)], 60.0, 20.0, heading=10.0)
    assert room.tiles[0][1] == room.box


def test_a_tile_with_room_shows_its_count_and_a_long_name_on_several_lines():
    drawn = treemap([Tile("wind and weather reports", "sea", 1234.0)], "chunks", 140, 120)
    shown = re.findall(r'<text [^>]*class="on-fill[^>]*>([^<]*)<', drawn)
    assert shown == ["wind and weather", "reports", "1\N{NARROW NO-BREAK SPACE}234"]


def test_every_tile_says_all_on_hovering_however_small():
    drawn = treemap([Tile("a", "sea", 999.0), Tile("tiny", "sea", 1.0)], "chunks", 90, 90)
    assert "<title>tiny · sea · 1 chunks</title>" in drawn


def test_it_is_well_formed_whatever_the_names():
    ET.fromstring(f"<div>{treemap([Tile('<a>', '<g>', 1.0)], '<unit>')}</div>")
