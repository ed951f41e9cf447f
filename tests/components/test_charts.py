"""Charts put numbers where they belong."""

import itertools
import re
import xml.etree.ElementTree as ET

import pytest

from components.charts import Curve, Reference, bars, lines


def _points(svg: str) -> list[list[tuple[float, float]]]:
    found = re.findall(r'<polyline points="([^"]*)"', svg)
    return [[tuple(map(float, pair.split(","))) for pair in line.split()] for line in found]


def test_greater_values_lie_higher_and_further_right():
    ((first, second),) = _points(lines([Curve("a", [0, 1], [2.0, 3.0])], "x", "y"))
    assert second[0] > first[0]
    assert second[1] < first[1]


def test_points_that_were_not_measured_are_left_out():
    ((*line,),) = _points(lines([Curve("a", [0, 1, 2], [2.0, float("nan"), 3.0])], "x", "y"))
    assert len(line) == 2


def test_a_curve_without_any_point_is_said_not_drawn():
    assert "No measured points" in lines([Curve("a", [0.0], [float("nan")])], "x", "y")


def test_the_reference_line_is_inside_the_picture():
    svg = lines([Curve("a", [0, 1], [2.0, 3.0])], "x", "y", [Reference("unigram", 9.0)])
    (y,) = re.findall(r'y1="([\d.]+)" y2="[\d.]+" class="axis" stroke-dasharray', svg)
    assert 0 < float(y) < 300


def test_labels_at_the_ends_do_not_lie_on_each_other():
    svg = lines([Curve(name, [0, 1], [1.0, 1.0]) for name in "abcd"], "x", "y")
    ys = sorted(float(y) for y in re.findall(r'y="([\d.]+)" font-size="12.5"', svg))
    assert min(b - a for a, b in itertools.pairwise(ys)) >= 14.9


def test_the_longest_bar_is_the_largest_value():
    svg = bars([("a", 1.0), ("b", 4.0)], "things")
    widths = [float(w) for w in re.findall(r'<rect [^>]*width="([\d.]+)"', svg)]
    assert widths[1] == pytest.approx(4 * widths[0], rel=1e-2)


@pytest.mark.parametrize(
    "svg",
    [
        lines([Curve("<a>", [0, 1], [1.0, 2.0])], "<x>", "<y>", [Reference("<r>", 1.5)]),
        bars([("<a>", 1.0)], "<unit>"),
    ],
)
def test_pictures_are_well_formed_whatever_their_names(svg):
    ET.fromstring(f"<div>{svg}</div>")
