"""Concepts are found by their words and by what they resemble."""

import pytest

from components import embedding
from components.catalogue.search import by_id_or_name, encoder_of, nearest_to, search
from tests.components.catalogue import small_library


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return small_library.write(tmp_path_factory.mktemp("library") / "sea")


def test_words_in_the_name_come_before_words_in_a_tag_whatever_their_case(library):
    hits = search(library, "SEA", 2, encoder_of(library))
    assert [(hit.concept.name, hit.place) for hit in hits] == [
        ("Sea voyages", "name"), ("Storms", "tag"),
    ]  # fmt: skip


def test_a_score_is_the_cosine_and_what_the_words_are_worth(library):
    for hit, worth in zip(
        search(library, "whale", 4, encoder_of(library)), (0.5, 0, 0, 0), strict=True
    ):
        assert hit.score == pytest.approx(hit.cosine + worth)


def test_meaning_alone_finds_what_holds_none_of_the_words(library):
    (hit,) = search(library, "rigging under storm at gale", 1, encoder_of(library))
    assert (hit.concept.name, hit.place) == ("Storms", "")


def test_without_an_encoder_only_what_holds_the_words_is_found(library):
    hits = search(library, "ship", 9, None)
    assert [(hit.concept.name, hit.cosine) for hit in hits] == [("Sailing ships", None)]
    assert search(library, "railway", 9, None) == []


def test_a_blank_text_is_refused(library):
    with pytest.raises(ValueError, match="nothing to search for"):
        search(library, "  ", 3, None)


def test_an_encoder_that_changed_since_is_refused_with_both_digests(tmp_path):
    other = small_library.write(tmp_path / "other", encoder_digest="0123456789abcdef0123")
    with pytest.raises(ValueError, match="0123456789abcdef, here it is"):
        encoder_of(other)


def test_an_encoder_that_is_gone_is_named_with_the_way_on(library, monkeypatch):
    def gone(name):
        raise OSError("no such folder")

    monkeypatch.setattr(embedding, "load", gone)
    with pytest.raises(ValueError, match=r"encoder hashing cannot be opened \(no such folder\)"):
        encoder_of(library)


def test_the_nearest_concepts_are_those_by_cosine_without_the_concept_itself(library):
    cosine_K = (library.centroids_KD @ library.centroids_KD[3]).tolist()
    by_hand = sorted((0, 1, 2), key=lambda row: -cosine_K[row])
    near = nearest_to(library, library.concepts[3], 2)
    assert [other.concept_id for other, _ in near] == by_hand[:2]
    assert [cosine for _, cosine in near] == pytest.approx([cosine_K[row] for row in by_hand[:2]])


def test_more_neighbours_than_there_are_concepts_are_all_the_others(library):
    assert len(nearest_to(library, library.concepts[0], 99)) == 3


@pytest.mark.parametrize("given", ["2", "whales", " Whales "])
def test_a_concept_is_meant_by_its_id_or_its_name(library, given):
    assert by_id_or_name(library, given).name == "Whales"


def test_a_name_that_is_not_there_gets_the_nearest(library):
    with pytest.raises(ValueError, match=r"'Whale'\. Did you mean Whales\?"):
        by_id_or_name(library, "Whale")
    with pytest.raises(ValueError, match="clearstory concepts search 'xyzzy'"):
        by_id_or_name(library, "xyzzy")
    with pytest.raises(ValueError, match="no concept 4; ids are 0 to 3"):
        by_id_or_name(library, "4")
