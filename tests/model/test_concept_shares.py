"""Shares have one denominator, count concept by concept, and cannot cancel unless signed."""

import pytest
import torch

from model.attribution import ConceptAttribution
from model.concept_shares import magnitude, part_shares, strongest
from model.directions import ConceptRef

FOUND = ConceptAttribution(
    known_ids_Nk=torch.tensor([[2, 0], [2, 1]]),
    known_Nk=torch.tensor([[3.0, -1.0], [-1.0, 0.0]]),
    unknown_ids_Nk=torch.tensor([[5, 6, 7], [6, 5, 4]]),
    unknown_Nk=torch.tensor([[1.0, -1.0, 0.0], [2.0, 1.0, 0.0]]),
    unknown_N=torch.tensor([0.0, 3.0]),
    residual_N=torch.tensor([2.0, -4.0]),
    logit_N=torch.tensor([4.0, -2.0]),
)  # magnitudes 4 + 2 + 2 and 1 + 3 + 4
EVERY = slice(None)


def test_shares_of_parts_by_hand() -> None:
    assert magnitude(FOUND).tolist() == [8.0, 8.0]
    found = part_shares(FOUND, EVERY, draws=40, seed=0)
    assert (found.known.value, found.unknown.value) == pytest.approx((5 / 16, 5 / 16))
    assert found.residual.value == pytest.approx(6 / 16)
    assert found.residual_signed.value == pytest.approx(-2 / 16)
    assert found.known_signed.value == pytest.approx(1 / 16)
    assert found.residual.low <= found.residual.value <= found.residual.high


def test_a_residual_that_cancels_keeps_its_absolute_share() -> None:
    opposite = ConceptAttribution(
        FOUND.known_ids_Nk, FOUND.known_Nk.abs(), FOUND.unknown_ids_Nk, FOUND.unknown_Nk,
        FOUND.unknown_N, torch.tensor([3.0, -2.0]), FOUND.logit_N,
    )  # fmt: skip
    found = part_shares(opposite, EVERY, draws=40, seed=0)
    assert found.residual_signed.value == pytest.approx(0.0, abs=1e-6)
    assert found.residual.value == pytest.approx((3 / 9 + 2 / 6) / 2)


def test_a_chunk_ranks_concepts_by_their_mean_share_over_all_its_tokens() -> None:
    first, second, third = strongest(FOUND, EVERY)[:3]
    assert first.concept == ConceptRef("known", 2)
    assert (first.share, first.n_tokens) == (pytest.approx(2 / 16), 2)
    assert first.logits == pytest.approx(1.0)
    assert second.concept == ConceptRef("unknown", 5)
    assert second.share == pytest.approx(2 / 16)
    assert third.concept in (ConceptRef("known", 0), ConceptRef("unknown", 6))


def test_one_token_is_a_chunk_like_any_other() -> None:
    first = strongest(FOUND, slice(1, 2))[0]
    assert (first.concept, first.share) == (ConceptRef("unknown", 6), pytest.approx(2 / 8))
    found = part_shares(FOUND, slice(1, 2), draws=40, seed=0)
    assert found.residual.low == found.residual.high == pytest.approx(0.5)
