"""Bands are as wide as what they stand for, and nothing is lost unseen."""

import re
import xml.etree.ElementTree as ET

import pytest

from components.flow import Loss, flow


def bands(drawn):
    """Height of each band at its right end, by the label beside it."""
    edges = re.findall(r"([\d.]+)H[\d.]+V([\d.]+)H", drawn)
    labels = re.findall(r'<text [^>]*class="(?:strong)?">([^<]*)<', drawn)[1:]
    return {name: float(low) - float(high) for name, (high, low) in zip(labels, edges, strict=True)}


def test_widths_are_in_proportion_and_the_rest_is_named():
    found = bands(flow("clusters", 40, [Loss("too rare", 10), Loss("alike", 5)], "concepts"))
    assert list(found) == ["25 concepts", "5 alike", "10 too rare"]
    assert found["25 concepts"] == pytest.approx(5 * found["5 alike"], rel=1e-2)
    assert found["10 too rare"] == pytest.approx(2 * found["5 alike"], rel=1e-2)


def test_nothing_lost_is_one_band():
    assert list(bands(flow("clusters", 3, [], "concepts"))) == ["3 concepts"]


def test_losing_more_than_there_was_is_refused():
    with pytest.raises(ValueError, match=r"\[3, 2\] of 4 clusters cannot be lost"):
        flow("clusters", 4, [Loss("a", 3), Loss("b", 2)], "concepts")


def test_it_is_well_formed_whatever_the_reasons():
    ET.fromstring(flow("<w>", 2, [Loss("<script>", 1)], "<r>"))
