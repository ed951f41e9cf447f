"""Blocks of pages: escaped, aligned, and complete without a server."""

import base64

import pytest

from components.pages import (
    Column,
    Fact,
    Markup,
    Section,
    cards,
    folded,
    page,
    png,
    quote,
    table,
)
from components.shades import heat, signed_bar, stacked, tinted

HOSTILE = '"><img src=x onerror=alert(1)>'


@pytest.mark.parametrize(
    "block",
    [
        table([Column(HOSTILE, HOSTILE)], [[HOSTILE]], HOSTILE),
        cards([Fact(HOSTILE, HOSTILE, HOSTILE, HOSTILE)]),
        folded(HOSTILE, Markup("")),
        quote(HOSTILE),
        heat([(HOSTILE, 1.0)]),
        tinted([(HOSTILE, 1, 0.5, HOSTILE)]),
        stacked([(HOSTILE, 0.5)]),
    ],
)
def test_text_from_data_never_becomes_markup(block):
    assert "<img" not in block
    assert "&lt;img" in block


def test_a_page_links_each_section_and_carries_its_style():
    made = page("Title", "sub", [Section("a", "First", "lead", Markup("<p>x</p>"))], Markup(""))
    assert '<a href="#a">First</a>' in made
    assert '<section id="a">' in made
    assert "prefers-color-scheme:dark" in made


def test_columns_of_numbers_are_marked_and_missing_ones_are_a_dash():
    made = table([Column("name"), Column("n", "rows")], [["a", 1], ["b", None]])
    assert '<th class="number">n<small>rows</small></th>' in made
    assert made.count('<td class="number">') == 2
    assert "–" in made


def test_an_empty_table_says_so():
    assert "nothing" in table([Column("a")], [])


def test_a_picture_lies_inside_the_page(tmp_path):
    (tmp_path / "x.png").write_bytes(b"bytes")
    assert base64.b64encode(b"bytes").decode() in png(tmp_path / "x.png", "a picture")


def test_the_heaviest_token_is_darkest_and_signs_have_their_own_colour():
    made = heat([("up", 2.0), ("down", -1.0), ("none", 0.0)])
    assert '<mark class="for" style="--w:70.0%"' in made
    assert '<mark class="against" style="--w:35.0%"' in made
    assert '--w:0.0%" title="0">none' in made


def test_a_bar_is_half_the_width_at_the_largest_value():
    assert "width:50.0%" in signed_bar(-3.0, 3.0)
    assert 'class="bar against"' in signed_bar(-3.0, 3.0)
