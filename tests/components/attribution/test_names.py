"""A token's rows add up to its parts, whatever is listed by name."""

import pytest
import torch

from components.attribution.names import Names
from components.unknown_names import UNNAMED, UnknownName, UnknownNames
from model.attribution import ConceptAttribution


def found_to_be(concept: int, name: str) -> UnknownName:
    return UnknownName(concept, name, "d", 0.8, 0.7, 0.9, 12, 0.1, ("rain",), "some rain")


NAMES = Names(
    ("Sea", "Sky", "Salt"),
    UnknownNames({6: found_to_be(6, "Storms"), 7: found_to_be(7, UNNAMED)}, {}),
)
FOUND = ConceptAttribution(
    known_ids_Nk=torch.tensor([[2, 0]]), known_Nk=torch.tensor([[0.5, -1.5]]),
    unknown_ids_Nk=torch.tensor([[7, 6, 4]]), unknown_Nk=torch.tensor([[2.0, -3.0, 0.25]]),
    unknown_N=torch.tensor([-1.0]), residual_N=torch.tensor([4.0]), logit_N=torch.tensor([2.0]),
)  # fmt: skip


def test_rows_of_a_token_by_hand() -> None:
    assert NAMES.contributions(FOUND, 0, top=1) == [
        ("known:0", "Sea", -1.5),
        ("known:rest", "the other known concepts", 0.5),
        ("unknown:6", "Discovered: Storms", -3.0),
        ("unknown:rest", "the other unknown concepts", 2.0),
        ("residual", "residual", 4.0),
    ]


def test_what_unknown_concepts_do_not_explain_of_their_part_is_in_the_rest() -> None:
    rows = {ref: weight for ref, _, weight in NAMES.contributions(FOUND, 0, top=9)}
    assert rows["known:rest"] == 0.0
    assert rows["unknown:rest"] == pytest.approx(-1.0 - (2.0 - 3.0 + 0.25))
    assert sum(rows.values()) == pytest.approx(float(FOUND.logit_N))


def test_a_concept_that_is_unnamed_or_was_not_tried_is_told_by_its_number() -> None:
    listed = {ref: name for ref, name, _ in NAMES.contributions(FOUND, 0, top=3)}
    assert (listed["unknown:7"], listed["unknown:4"]) == ("unknown 7", "unknown 4")
