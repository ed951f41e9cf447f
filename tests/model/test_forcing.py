"""Which parts a training state is made of (method §3.2-3.4; conformance 1)."""

import itertools

import pytest
import torch

from model import forcing
from model.forcing import Chances, Forcing, Parts, pooled_labels, recompose, supervised
from tests.model import tiny

MASKED_BT = torch.tensor([[True, True, False], [False, True, True]])


def parts():
    generator = torch.Generator().manual_seed(0)
    hidden, known, unknown, truth = torch.randn(4, 4, 3, generator=generator)
    return Parts(hidden, known, unknown, truth, torch.tensor([True, False, True, True]))


def forced(*, known=False, unknown=False, known_dropped=False, residual_dropped=False):
    return Forcing(
        known_B=torch.tensor([known, known]),
        unknown_B=torch.tensor([unknown, unknown]),
        known_dropped_B=torch.tensor([known_dropped, known_dropped]),
        residual_dropped_BT=torch.full((2, 3), residual_dropped),
    )


@pytest.mark.parametrize("pattern", list(itertools.product([False, True], repeat=3)))
def test_the_state_is_the_hidden_state_while_the_residual_is_kept(pattern):
    known, unknown, dropped = pattern
    own = parts()
    state = recompose(own, forced(known=known, unknown=unknown, known_dropped=dropped), MASKED_BT)
    assert torch.equal(state, own.hidden_ND)


def test_without_a_residual_the_state_is_the_parts_used():
    own = parts()
    lost = {"residual_dropped": True}
    plain = recompose(own, forced(**lost), MASKED_BT)
    torch.testing.assert_close(plain, own.known_ND + own.unknown_ND)
    known = recompose(own, forced(known=True, **lost), MASKED_BT)
    torch.testing.assert_close(known[0], own.truth_ND[0] + own.unknown_ND[0])
    both = recompose(own, forced(known=True, unknown=True, **lost), MASKED_BT)
    torch.testing.assert_close(both[2], own.hidden_ND[2])
    dropped = recompose(own, forced(known=True, known_dropped=True, **lost), MASKED_BT)
    torch.testing.assert_close(dropped[0], own.unknown_ND[0])


def test_a_token_without_labels_keeps_its_own_parts():
    own = parts()
    everything = forced(known=True, unknown=True, known_dropped=True, residual_dropped=True)
    state = recompose(own, everything, MASKED_BT)
    torch.testing.assert_close(state[1], own.known_ND[1] + own.unknown_ND[1])


def test_forcing_is_per_sequence_and_the_residual_per_token():
    own = parts()
    some = Forcing(
        known_B=torch.tensor([True, False]),
        unknown_B=torch.tensor([False, False]),
        known_dropped_B=torch.tensor([False, False]),
        residual_dropped_BT=torch.tensor([[True, False, False], [False, True, False]]),
    )
    state = recompose(own, some, MASKED_BT)
    torch.testing.assert_close(state[0], own.truth_ND[0] + own.unknown_ND[0])
    assert torch.equal(state[1], own.hidden_ND[1])
    torch.testing.assert_close(state[2], own.known_ND[2] + own.unknown_ND[2])
    assert torch.equal(state[3], own.hidden_ND[3])


def test_pooled_labels_are_a_plain_sum():
    embedding_KD = torch.tensor([[1.0, 0.0], [0.0, 2.0], [4.0, 4.0]])
    pooled = pooled_labels(embedding_KD, torch.tensor([[0, 2, -1], [-1, -1, -1]]))
    assert pooled.tolist() == [[5.0, 4.0], [0.0, 0.0]]


def test_an_empty_list_is_not_no_concepts():
    batch = tiny.batch()
    batch.concepts_CM[0] = -1
    assert supervised(batch).tolist() == [False, True, False, True, True, False]


def test_events_happen_at_their_chances_and_not_per_rank():
    batch = tiny.batch(1000)
    chances = Chances(known=0.7, unknown=0.4, known_dropped=0.1, residual_dropped=0.3)
    drawn = forcing.draw(batch, chances, seed=0, step=1)
    for events, chance in (
        (drawn.known_B, 0.7),
        (drawn.unknown_B, 0.4),
        (drawn.known_dropped_B, 0.1),
        (drawn.residual_dropped_BT, 0.3),
    ):
        assert float(events.float().mean()) == pytest.approx(chance, abs=0.04)
    half = forcing.draw(batch.part(slice(1, None, 2)), chances, seed=0, step=1)
    assert torch.equal(half.known_B, drawn.known_B[1::2])
    assert torch.equal(half.residual_dropped_BT, drawn.residual_dropped_BT[1::2])
