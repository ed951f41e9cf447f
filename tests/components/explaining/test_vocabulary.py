"""A person's words for a concept lead to it, or to what they may have meant."""

import pytest

from components.explaining.vocabulary import (
    AmbiguousConceptError,
    UnknownConceptError,
    Vocabulary,
)
from components.library import KnownConcept
from components.unknown_names import UnknownName

NAMES = ("Sailing ships", "Whales", "Storms at sea", "Salt + pepper", "2001")
KNOWN = tuple(KnownConcept(i, name, "", 0.1) for i, name in enumerate(NAMES))


def sought(concept_id, name):
    return UnknownName(concept_id, name, "of ropes", 0.8, 0.7, 0.9, 12, 0.1, ("rope",), "a rope")


UNKNOWN = {4: sought(4, "rigging"), 5: sought(5, "unnamed"), 6: sought(6, "rigging")}
VOCABULARY = Vocabulary(KNOWN, 9, UNKNOWN)


@pytest.mark.parametrize(
    ("asked", "kind", "concept_id"),
    [
        ("whales", "known", 1),
        (" WHALES ", "known", 1),
        ("2", "known", 2),
        ("concept 3", "known", 3),
        ("2001", "known", 4),  # a name goes before an id
        ("unknown 4", "unknown", 4),
        ("unknown:8", "unknown", 8),
    ],
)
def test_a_concept_is_found_by_name_whatever_its_case_and_by_id(asked, kind, concept_id):
    (found,) = VOCABULARY.group(asked)
    assert (found.kind, found.concept_id) == (kind, concept_id)


def test_names_joined_by_a_plus_are_a_group_unless_that_is_a_name():
    assert [one.name for one in VOCABULARY.group("whales + 0")] == ["Whales", "Sailing ships"]
    assert [one.name for one in VOCABULARY.group("salt + pepper")] == ["Salt + pepper"]


def test_an_unknown_name_is_refused_with_the_nearest_ones():
    with pytest.raises(UnknownConceptError, match="Did you mean Whales") as raised:
        VOCABULARY.one("whals")
    assert raised.value.candidates[0] == "Whales"
    assert raised.value.asked == "whals"


def test_ids_that_are_not_there_are_unknown_names():
    for asked in ("5", "unknown 9", "-1", "²"):
        with pytest.raises(UnknownConceptError, match="among 5 known and 9 unknown"):
            VOCABULARY.one(asked)


def test_a_name_of_two_concepts_is_refused_with_both_and_the_way_to_one():
    with pytest.raises(AmbiguousConceptError, match="Give the id of one") as raised:
        VOCABULARY.one("discovered: rigging")
    assert raised.value.candidates == (
        "unknown 4: Discovered: rigging", "unknown 6: Discovered: rigging",
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["known", "unknown"])
def test_the_way_to_one_of_two_concepts_of_a_name_leads_there(kind):
    twice = Vocabulary(
        (*KNOWN, KnownConcept(5, "discovered: rigging", "", 0.1)), 9, VOCABULARY.unknown
    )
    with pytest.raises(AmbiguousConceptError) as raised:
        twice.one("Discovered: rigging")
    offered = [one for one in raised.value.candidates if one.startswith(f"{kind} ")]
    reference = offered[0].partition(":")[0]
    found = twice.one(reference)
    assert f"{found.kind} {found.concept_id}" == reference


def test_a_name_that_does_not_hold_is_a_number_and_one_that_does_has_its_evidence():
    assert VOCABULARY.name("unknown", 5) == "unknown 5"
    found = VOCABULARY.concept("unknown", 4)
    assert (found.name, found.description) == ("Discovered: rigging", "of ropes")
    assert (found.name_auc.low, found.name_auc.n) == (0.7, 12)
    with pytest.raises(UnknownConceptError):
        VOCABULARY.one("unnamed")


def test_search_puts_beginnings_of_words_before_what_is_merely_alike():
    assert [one.name for one in VOCABULARY.find("sa", 3)][:2] == ["Sailing ships", "Salt + pepper"]
    assert VOCABULARY.find("storm", 1)[0].name == "Storms at sea"
    assert VOCABULARY.find("zzzz", 5) == []
    misspelled = VOCABULARY.find("sialing ship", 2)
    assert misspelled[0].name == "Sailing ships"
    assert misspelled[0].score < VOCABULARY.find("ailing", 1)[0].score
    assert VOCABULARY.find("storm", 0) == []


def test_an_empty_search_lists_concepts_in_their_order_named_ones_first():
    found = [one.name for one in VOCABULARY.find("", 8)]
    assert found[:5] == list(NAMES)
    assert found[5:] == ["Discovered: rigging", "Discovered: rigging", "unknown 0"]
