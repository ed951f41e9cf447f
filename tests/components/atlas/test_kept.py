"""Kept vectors: equal texts are encoded once, the same texts never again."""

import numpy as np

from components.atlas import kept
from components.hashing import HashingEmbedder


class Counting(HashingEmbedder):
    asked = 0

    def embed(self, texts):
        Counting.asked += len(texts)
        return super().embed(texts)


def test_texts_are_encoded_once_and_come_back_in_order(tmp_path):
    texts = ["sea ship", "law", "sea ship", "sum"]
    one = kept.embed(texts, Counting(), tmp_path)
    other = kept.embed(texts, Counting(), tmp_path)
    assert Counting.asked == 3
    np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(one, HashingEmbedder().embed(texts), atol=1e-3)
    assert [path.suffix for path in tmp_path.iterdir()] == [".npy"]
