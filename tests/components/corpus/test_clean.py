"""Cleaning and cutting: one form for one text, and parts that lose nothing."""

from components.corpus.clean import cleaned, cut
from components.corpus.splits import split_of


def test_cleaning_by_hand():
    assert cleaned("\ufeffa \r\n\tb\x07\r\n\n\n\n\nc\n\n") == "a\n\tb\n\n\nc"
    assert cleaned("cafe\u0301") == "caf\u00e9"


def test_cutting_prefers_the_widest_gap():
    text = "aaaa bbbb\n\ncccc dddd\n\n\neeee ffff\n\ngggg hhhh"
    assert list(cut(text, 25)) == ["aaaa bbbb\n\ncccc dddd", "eeee ffff\n\ngggg hhhh"]


def test_parts_have_similar_lengths():
    text = "\n".join("abcd" for _ in range(110))
    assert all(150 <= len(part) <= 200 for part in cut(text, 200))


def test_text_without_any_gap_is_cut_all_the_same():
    assert "".join(cut("x" * 1001, 100)) == "x" * 1001
    assert max(map(len, cut("x" * 1001, 100))) <= 100


def test_text_within_the_limit_is_one_part():
    assert list(cut("a\n\n\nb", 5)) == ["a\n\n\nb"]


def ids(n):
    return [f"doc{number}" for number in range(n)]


def test_splits_have_about_their_shares():
    splits = split_of({"a": ids(3000)}, valid_share=0.05, test_share=0.1, seed=1)
    found = list(splits.values())
    assert 120 < found.count("valid") < 180
    assert 250 < found.count("test") < 350


def test_a_larger_corpus_moves_no_document_to_another_split():
    small = split_of({"a": ids(300)}, valid_share=0.05, test_share=0.1, seed=1)
    large = split_of({"a": ids(900)}, valid_share=0.05, test_share=0.1, seed=1)
    assert all(large[doc_id] == split for doc_id, split in small.items())


def test_every_domain_reaches_every_split_from_three_documents_on():
    domains = {name: [f"{name}{number}" for number in range(3)] for name in "abcdefgh"}
    splits = split_of(domains, valid_share=0.05, test_share=0.05, seed=1)
    for doc_ids in domains.values():
        assert sorted(splits[doc_id] for doc_id in doc_ids) == ["test", "train", "valid"]
