"""The encoder without weights."""

import numpy as np

from components.hashing import HashingEmbedder, word_starts


def cosine(left: str, right: str) -> float:
    vectors_ND = HashingEmbedder().embed([left, right])
    return float(vectors_ND[0] @ vectors_ND[1])


def test_vectors_have_length_one_and_a_text_without_words_has_zeros() -> None:
    vectors_ND = HashingEmbedder().embed(["the liver", "x", "", "?!"])
    np.testing.assert_allclose(np.linalg.norm(vectors_ND, axis=1), [1, 1, 0, 0], atol=1e-6)


def test_texts_are_alike_by_shared_words_and_by_shared_pieces_of_words() -> None:
    assert cosine("chronic liver disease", "disease of the liver") > 0.5
    assert 0.1 < cosine("vertebra", "vertebral") < 0.9
    assert abs(cosine("vertebra", "coronation")) < 0.15


def test_function_words_hardly_move_a_vector() -> None:
    assert cosine("liver", "the liver and of the") > 0.9


def test_a_vector_depends_on_the_text_alone() -> None:
    alone = HashingEmbedder().embed(["red deer"])[0]
    among_others = HashingEmbedder().embed(["a", "red deer", "bc"])[1]
    assert alone.tobytes() == among_others.tobytes()


def test_pieces_are_six_letters_at_most_or_one_sign() -> None:
    assert word_starts("Anatomical: x_1").tolist() == [0, 6, 10, 12, 13, 14]
