"""Recognition of concepts and the offline judge, on made-up numbers."""

import numpy as np
import pytest

from components.alignment import Card, judge
from components.evaluation.concepts import recognise

DOCUMENT_S = np.repeat(np.arange(10), 4)
LABEL_SK = np.stack([DOCUMENT_S % 2 == 0, np.arange(40) % 4 == 0, np.arange(40) < 3], axis=1)
CARDS = [Card(number, f"name {number}", "a card", f"tokens {number}") for number in range(3)]


def test_a_perfect_ranking_has_an_area_of_one():
    found = recognise(
        LABEL_SK.astype(np.float32), LABEL_SK, DOCUMENT_S, min_positives=10, draws=20, seed=0
    )
    assert found.auroc_macro.value == 1.0
    assert found.average_precision_macro.value == 1.0
    assert found.auroc_macro.n_groups == 10


def test_a_concept_with_few_positives_is_left_out():
    random_SK = np.random.default_rng(0).random((40, 3), dtype=np.float32)
    found = recognise(random_SK, LABEL_SK, DOCUMENT_S, min_positives=10, draws=20, seed=0)
    assert found.concept_L.tolist() == [0, 1]
    assert found.n_positives_L.tolist() == [20, 10]
    macro = found.auroc_macro
    assert macro.value == pytest.approx(found.auroc_L.mean())
    assert macro.low < macro.value < macro.high


def test_no_concept_with_enough_positives_is_said():
    with pytest.raises(ValueError, match=r"no concept has 21 held-out chunks \(the most is 20\)"):
        recognise(
            LABEL_SK.astype(np.float32), LABEL_SK, DOCUMENT_S, min_positives=21, draws=2, seed=0
        )


def embed_as(angles: dict[str, float]):
    def embed(texts: list[str]) -> np.ndarray:
        at_N = np.array([angles[text] for text in texts])
        return np.stack([np.cos(at_N), np.sin(at_N)], axis=1).astype(np.float32)

    return embed


def test_the_judge_by_hand():
    angles = {"name 0: a card": 0.0, "name 1: a card": 1.0, "name 2: a card": 3.0}
    angles |= {"tokens 0": 0.1, "tokens 1": 2.9, "tokens 2": 2.8}
    found = judge(CARDS, embed_as(angles))
    assert found.cosine_K.tolist() == pytest.approx(np.cos([0.1, 1.9, 0.2]).tolist())
    assert found.shuffled_K[0] == pytest.approx((np.cos(0.9) + np.cos(2.9)) / 2)
    # The second card is farther from its tokens than the third card, nearer than the first.
    assert found.auroc_K.tolist() == [1.0, 0.5, 1.0]


def test_an_encoder_that_says_nothing_is_at_chance():
    meant = {f"{card.name}: {card.description}": 0.0 for card in CARDS}
    said = {card.tokens: 1.0 for card in CARDS}
    found = judge(CARDS, embed_as(meant | said))
    assert found.auroc_K.tolist() == [0.5, 0.5, 0.5]


def test_one_concept_cannot_be_judged():
    with pytest.raises(ValueError, match="shuffled pairings need two"):
        judge(CARDS[:1], embed_as({}))
