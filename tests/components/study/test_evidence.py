"""A rater sees whole words, strong ones first, each once."""

from dataclasses import dataclass

import numpy as np

from components.study.config import DrawConfig
from components.study.evidence import evidence, whole_shares
from components.tokens import TokenStream
from tests.components.study.simulated import write_library


@dataclass
class Spans:
    """As much of a token stream as shares are counted on."""

    spans: list[list[int]]

    @property
    def tokenizer(self):
        return self

    @property
    def special_names(self):
        return {9: "<|pad|>"}

    def span_rows(self, split):
        return np.arange(len(self.spans))

    def span_tokens(self, row):
        return np.array(self.spans[row])


def test_a_word_is_whole_where_no_letter_touches_it_by_hand():
    pieces = [" king", "dom", ".", " a", "", "", "", "", "", "<|pad|>"]
    stream = Spans([[0, 1, 2], [0, 3, 0], [9, 1, 9]])
    shares = whole_shares(stream, pieces, sample_tokens=99)
    # king: cut short by dom once, whole twice; dom: after king once, alone once.
    np.testing.assert_allclose(shares[:4], [2 / 3, 1 / 2, 1, 1])


def test_shares_are_counted_on_the_start_of_the_stream_alone():
    pieces = [" king", "dom", "", "", "", "", "", "", "", "<|pad|>"]
    assert whole_shares(Spans([[0], [0, 1]]), pieces, sample_tokens=1)[0] == 1


def test_words_come_best_first_and_weak_or_hidden_ones_not_at_all(tmp_path):
    written = write_library(tmp_path)
    config = DrawConfig(n_words=3, min_support=9)
    words = evidence(written.lifted, TokenStream(written.tokens), config)
    assert words[1] == ["baaaa", "bbbbb", "bcccc"]
    few = DrawConfig(n_words=3, min_support=10)
    assert evidence(written.lifted, TokenStream(written.tokens), few) == {}
