"""A point is where it belongs, and a name lies on no other."""

import itertools
import re
import xml.etree.ElementTree as ET

from components.scatter import Point, scatter


def point(name, x, y, weight=1.0, group="g"):
    return Point(x, y, name, group, weight, "about it")


def names(drawn):
    return re.findall(r'text-anchor="middle"[^>]*>([^<]*)<', drawn)


def test_higher_and_further_right_in_the_plane_is_so_on_the_page():
    drawn = scatter([point("low", 0.0, 0.0, 2.0), point("high", 1.0, 1.0)], "map", n_names=0)
    low, high = re.findall(r"M([\d.]+) ([\d.]+)m", drawn)[:2]
    assert float(high[0]) > float(low[0])
    assert float(high[1]) < float(low[1])


def test_area_stands_for_weight():
    drawn = scatter([point("a", 0.0, 0.0, 8.0), point("b", 1.0, 1.0, 2.0)], "map", n_names=0)
    radius = [float(r) for r in re.findall(r"m-([\d.]+) 0a", drawn)[:2]]
    assert radius[0] == 2 * radius[1]


def test_of_two_names_in_one_place_the_heavier_is_written_and_both_are_told():
    drawn = scatter([point("light", 0.5, 0.5), point("heavy", 0.5, 0.5, 3.0)], "map", n_names=9)
    assert names(drawn) == ["heavy"]
    assert "<title>light · g · about it</title>" in drawn


def test_no_more_names_than_asked_for():
    spread = [point(str(i), i / 9, i / 9) for i in range(10)]
    assert len(names(scatter(spread, "map", n_names=4))) == 4


def test_eighteen_groups_have_signs_of_their_own():
    drawn = scatter([point("p", 0.5, 0.5, group=f"{i:02}") for i in range(18)], "map", n_names=0)
    signs = re.findall(r"<path d=\"M6.0 6.0(m[^\"]*)\" style=\"([^\"]*)\"", drawn)
    assert len(signs) == 18
    assert all(a != b for a, b in itertools.combinations(signs, 2))


def test_it_is_well_formed_whatever_the_names():
    ET.fromstring(f"<div>{scatter([point('<a>', 0, 0, group='<g>')], '<t>', n_names=1)}</div>")
