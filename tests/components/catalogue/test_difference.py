"""Every concept of both libraries is told once, as what became of it."""

from dataclasses import replace

import pytest

from components.catalogue.difference import compare
from components.catalogue.limits import Limits
from tests.components.catalogue import small_library
from tests.components.catalogue.small_library import SEA

AFTER = {
    "Sailing ships": SEA["Sailing ships"],
    "Storms": ("storm at sea", "storm", "hurricane"),
    "Whaling": SEA["Whales"],
    "Lighthouses": ("lighthouse", "lamp of a tower"),
}


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    return small_library.write(tmp_path_factory.mktemp("before") / "sea")


@pytest.fixture(scope="module")
def after(tmp_path_factory):
    return small_library.write(tmp_path_factory.mktemp("after") / "sea", AFTER)


def test_each_concept_is_what_became_of_it(before, after):
    found = compare(before, after, Limits())
    assert [pair.after.name for pair in found.same] == ["Sailing ships"]
    assert [(pair.after.name, pair.overlap) for pair in found.changed] == [("Storms", 0.5)]
    assert [(pair.before.name, pair.after.name) for pair in found.renamed] == [
        ("Whales", "Whaling")
    ]
    assert small_library.names(found.removed) == ["Sea voyages"]
    assert small_library.names(found.added) == ["Lighthouses"]


def test_a_library_does_not_differ_from_itself(before):
    found = compare(before, before, Limits())
    assert found.is_none
    assert len(found.same) == len(before.concepts)


def test_what_went_into_one_concept_is_merged_and_backwards_split(before, tmp_path):
    joined = {
        "Sea voyages": SEA["Sea voyages"] + SEA["Storms"], "Whales": SEA["Whales"],
        "Sailing ships": SEA["Sailing ships"],
    }  # fmt: skip
    after = small_library.write(tmp_path / "joined", joined)
    found = compare(before, after, Limits())
    (merged,) = found.merged
    assert merged.other.name == "Sea voyages"
    assert merged.share == 1.0
    (split,) = compare(after, before, Limits()).split
    assert (split.concept, split.other) == (merged.concept, merged.other)


def test_libraries_of_two_encoders_are_compared_by_their_tags_alone(before, after):
    other = replace(after, facts={**after.facts, "encoder_digest": "another"})
    found = compare(before, other, Limits(overlap=0.6))
    assert {pair.cosine for pair in (*found.same, *found.renamed)} == {None}
    assert [pair.after.name for pair in found.renamed] == ["Whaling"]


def test_of_two_candidates_the_likelier_is_the_one(tmp_path):
    before = small_library.write(tmp_path / "a", {"Gales": ("gale", "gale force", "wind")})
    after = small_library.write(
        tmp_path / "b", {"Winds": ("wind", "gale"), "Strong winds": ("gale", "gale force", "wind")}
    )
    (pair,) = compare(before, after, Limits()).renamed
    assert pair.after.name == "Strong winds"


def test_every_concept_of_both_is_told_exactly_once(before, after):
    found = compare(before, after, Limits())
    pairs = [*found.same, *found.changed, *found.renamed]
    first = [pair.before for pair in pairs] + [each.concept for each in found.merged]
    second = [pair.after for pair in pairs] + [each.concept for each in found.split]
    assert sorted(small_library.names([*first, *found.removed])) == sorted(SEA)
    assert sorted(small_library.names([*second, *found.added])) == sorted(AFTER)
