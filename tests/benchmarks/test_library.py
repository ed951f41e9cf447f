"""What the benchmarks of stage two say follows from what they measured."""

import numpy as np
import pytest

from benchmarks.larger_library import recurring
from benchmarks.library import extrapolated
from components.atlas.sampling import Passage
from components.hashing import HashingEmbedder


def test_extrapolation_by_hand():
    steps = ("read tags", "words of tags", "cluster", "drop, name, merge", "taxonomy", "freeze")
    measured = {"n_tags": 1000, "k": 10, "seconds": dict.fromkeys(steps, 1.0)}
    found = extrapolated(measured, n_tags=3000, k=20)
    work = (64 * 10 * 20 + 3000) * 20 / ((64 * 10 * 10 + 1000) * 10)
    assert found["cluster"] == pytest.approx(work)
    assert [found[name] for name in steps if name != "cluster"] == [3.0, 3.0, 3.0, 2.0, 3.0]


def test_only_phrases_that_recur_tag_a_passage():
    texts = [f"The white whale swam past the vessel {name}." for name in
             ("Rachel", "Samuel", "Jeroboam", "Virgin")]  # fmt: skip
    texts += [f"Nothing of note happened at all in the town of {name}." for name in
              ("Ely", "Wells", "Ripon", "Truro") for _ in range(9)]  # fmt: skip
    passages = [Passage(number, text) for number, text in enumerate(texts)]
    encoder = HashingEmbedder()
    rows = recurring(passages, np.asarray(encoder.embed(texts)), encoder)
    of_whales = {row["tag"] for row in rows if row["chunk_id"] == 0}
    assert "white whale" in of_whales
    assert not any("rachel" in str(tag) for tag in of_whales)
    assert len({row["chunk_id"] for row in rows}) < len(texts), (
        "a phrase of most passages tags none"
    )
