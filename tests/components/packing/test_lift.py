"""Lifted words: frequent in a concept and rare outside of it, not merely rare."""

import math

import numpy as np
import pytest
from pydantic import ValidationError

from components import contracts
from components.packing.config import LiftConfig, PackConfig
from components.packing.lift import Counts, lift, log_odds
from components.packing.stage import pack
from components.tokens import TokenStream
from tests.components.written_corpus import Text, write_corpus

SEA = ["the boats wait for the tide", "a tide that the boats ride", "the tide went out"]
LAND = ["the plough waits for the rain", "a field that the plough turns", "the rain went on"]


def texts():
    """Chunks about the sea carry concept 0, those about the land concept 1."""
    yield from (
        Text(f"{split}{i}{k}", split, "prose", [(chunk, {concept: 1.0})])
        for split, n in (("train", 8), ("valid", 1), ("test", 1))
        for i in range(n)
        for concept, chunks in ((0, SEA), (1, LAND))
        for k, chunk in enumerate(chunks, start=3 * concept)
    )
    # Seen once, and so found in concept 0 alone; repeated often, but in one chunk.
    yield Text("rare", "train", "prose", [("zebra " * 30, {0: 1.0})])
    # Only in held-out text.
    yield Text("later", "test", "prose", [("tide harbour", {1: 1.0})])
    yield Text("unlabelled", "train", "prose", [("tide tide tide", {})])


@pytest.fixture(scope="module")
def lifted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lift")
    corpus = write_corpus(folder / "corpus", list(texts()), n_concepts=3)
    (folder / "tokens").mkdir()
    (folder / "lifted").mkdir()
    pack(
        corpus.documents, corpus.chunks, corpus.concepts, corpus.labels, folder / "tokens",
        PackConfig(vocab_size=318, block=4),
    )  # fmt: skip
    lift(folder / "tokens", corpus.concepts, folder / "lifted", LiftConfig(min_support=2))
    tokenizer = TokenStream(folder / "tokens").tokenizer
    rows = contracts.read(folder / "lifted", contracts.LIFTED_WORDS).to_pylist()
    return [{**row, "word": tokenizer.pieces([row["token_id"]])[0].strip()} for row in rows]


def words_of(lifted, concept_id):
    return [row["word"] for row in lifted if row["concept_id"] == concept_id]


def test_a_concept_lifts_its_own_words(lifted):
    assert words_of(lifted, 0)[0] == "tide"
    assert "boats" in words_of(lifted, 0)
    assert {"plough", "rain"} <= set(words_of(lifted, 1))


def test_words_of_both_are_lifted_by_neither(lifted):
    assert "the" not in words_of(lifted, 0) + words_of(lifted, 1)


def test_a_word_that_one_chunk_repeats_is_not_lifted(lifted):
    assert "zebra" not in words_of(lifted, 0)


def test_support_counts_training_chunks_of_the_concept(lifted):
    (tide,) = [row for row in lifted if row["word"] == "tide"]
    assert (tide["concept_id"], tide["support"]) == (0, 24)


def test_a_concept_without_chunks_lifts_nothing(lifted):
    assert words_of(lifted, 2) == []


def test_words_come_best_first(lifted):
    odds = [row["log_odds"] for row in lifted if row["concept_id"] == 0]
    assert odds == sorted(odds, reverse=True)
    assert min(odds) > 0


def test_log_odds_by_hand():
    counts = Counts(
        both_KV=np.array([[3.0]]),
        with_concept_K=np.array([4.0]),
        with_word_V=np.array([5.0]),
        n_chunks=10,
    )
    # The overall rate is 5.5/11 = 1/2, so a prior of 2 chunks adds one hit and one miss each.
    expected = math.log(4 / 2) - math.log(3 / 5)
    assert log_odds(counts, prior_chunks=2.0, deviations=0.0)[0, 0] == pytest.approx(expected)
    spread = math.sqrt(1 / 4 + 1 / 2 + 1 / 3 + 1 / 5)
    with_interval = log_odds(counts, prior_chunks=2.0, deviations=1.5)[0, 0]
    assert with_interval == pytest.approx(expected - 1.5 * spread)


def test_a_rare_word_has_the_largest_plain_lift_but_not_the_largest_log_odds():
    counts = Counts(
        both_KV=np.array([[2.0, 60.0]]),  # twice, and only here; often, and mostly here
        with_concept_K=np.array([100.0]),
        with_word_V=np.array([2.0, 90.0]),
        n_chunks=1000,
    )
    plain = counts.both_KV[0] / counts.with_word_V
    odds = log_odds(counts, prior_chunks=10.0, deviations=1.96)[0]
    assert plain[0] > plain[1]
    assert odds[0] < odds[1]


def test_support_of_one_is_refused():
    with pytest.raises(ValidationError, match="min_support is 1"):
        LiftConfig(min_support=1)
