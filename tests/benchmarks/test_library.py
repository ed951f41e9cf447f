"""What the benchmarks of stage two say follows from what they measured."""

import pytest

from benchmarks.library import extrapolated


def test_extrapolation_by_hand():
    steps = ("read tags", "words of tags", "cluster", "drop, name, merge", "taxonomy", "freeze")
    measured = {"n_tags": 1000, "k": 10, "seconds": dict.fromkeys(steps, 1.0)}
    found = extrapolated(measured, n_tags=3000, k=20)
    work = (64 * 10 * 20 + 3000) * 20 / ((64 * 10 * 10 + 1000) * 10)
    assert found["cluster"] == pytest.approx(work)
    assert [found[name] for name in steps if name != "cluster"] == [3.0, 3.0, 3.0, 2.0, 3.0]
