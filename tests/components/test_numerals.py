"""Numbers as people read them."""

import pytest

from components.numerals import aligned, number, short, ticks


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.72, "0.72"),
        (12.3456, "12.35"),
        (-3, "−3"),
        (1234567, "1\u202f234\u202f567"),
        (98765.4, "98\u202f765"),
        (4e12, "4.00 × 10¹²"),
        (3e-6, "3.00 × 10⁻⁶"),
        (100.0, "100"),
        (float("nan"), "not finite"),
        (True, "yes"),
    ],
)
def test_four_digits_and_no_row_of_zeros(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([4.0, 5.3333], ["4.000", "5.333"]),
        ([0.5, 0.25], ["0.50", "0.25"]),
        ([1, 20], ["1", "20"]),
        ([120.5, 0.001], ["120.5", "0.001"]),
        ([7.983, 0.002257], ["7.983", "0.002257"]),
        ([0.5, 2e12], ["0.5", "2.00 × 10¹²"]),
        ([], []),
    ],
)
def test_a_column_has_one_number_of_decimals(values, texts):
    assert aligned(values) == texts


def test_ticks_are_round_and_inside():
    assert ticks(0.0, 10.0) == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    assert ticks(4.1, 7.3) == [5.0, 6.0, 7.0]


def test_axis_labels_use_the_units_of_thousands():
    assert [short(x) for x in (0.25, 1500, 2e6, -3e9)] == ["0.25", "1.5k", "2M", "−3G"]
