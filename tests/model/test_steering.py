"""Steering and interventions: calibrated, one-sided where they should be, nothing at strength 0."""

import pytest
import torch

from model import steering
from model.sampling import generate
from model.sampling_config import SamplingConfig
from tests.model.explained import VOCABULARY, loud_network, some_prompts

Change = steering.Change


@torch.no_grad()
def test_calibrated_direction_moves_its_top_token_by_the_strength() -> None:
    lm = loud_network()
    for concept in range(3):
        direction_D = steering.direction(lm, [concept])
        gain = steering.calibration(lm, direction_D, 8.0)
        torch.testing.assert_close(lm.unembed(gain * direction_D).max(), torch.tensor(8.0))


@torch.no_grad()
def test_a_group_steers_along_the_sum_of_its_members() -> None:
    lm = loud_network()
    embedding_KD = lm.concepts.known.embedding_KD
    summed_D = embedding_KD[2] + embedding_KD[5]
    torch.testing.assert_close(steering.direction(lm, [2, 5]), summed_D / summed_D.norm())


def test_suppression_raises_no_logit_and_lowers_the_tokens_of_the_concept() -> None:
    lm = loud_network()
    found = steering.steering(lm, [Change((4,), -6.0), Change((4,), 6.0)], first_layer=1)
    suppression_V = found.suppression_BV[0]
    toward_V = lm.unembed(steering.direction(lm, [4]))
    assert (suppression_V >= 0).all()
    torch.testing.assert_close(suppression_V.max(), torch.tensor(6.0))
    assert ((suppression_V > 0) == (toward_V > 0)).all()
    assert (found.suppression_BV[1] == 0).all()


@pytest.mark.parametrize("attention", ["block_causal", "causal"])
def test_strength_zero_is_the_unsteered_network_bit_for_bit(attention: str) -> None:
    lm, prompts_BP = loud_network(attention), some_prompts(3, 10)
    config = SamplingConfig(n_new=15, temperature=1.0)
    nothing = steering.steering(lm, [Change((c,), 0.0) for c in range(3)], first_layer=0)
    steered = generate(lm, prompts_BP, config, steering=nothing)
    for trace, plain in zip(steered, generate(lm, prompts_BP, config), strict=True):
        assert torch.equal(trace.ids_T, plain.ids_T)
        assert torch.equal(trace.logit_N, plain.logit_N)


@pytest.mark.parametrize("attention", ["block_causal", "causal"])
def test_a_row_is_steered_by_its_own_change_alone(attention: str) -> None:
    lm, prompts_BP = loud_network(attention), some_prompts(2, 10)
    changes = [Change((3,), 0.0), Change((3,), 30.0)]
    steered = generate(
        lm, prompts_BP, SamplingConfig(n_new=12), steering=steering.steering(lm, changes, 1)
    )
    plain = generate(lm, prompts_BP, SamplingConfig(n_new=12))
    assert torch.equal(steered[0].ids_T, plain[0].ids_T)
    assert not torch.equal(steered[1].ids_T, plain[1].ids_T)


@torch.no_grad()
def test_setting_concepts_moves_every_logit_by_the_predicted_amount() -> None:
    lm = loud_network()
    hidden_BTD = lm.hidden(some_prompts(2, 7))
    top = lm.concepts(hidden_BTD).top
    kept, absent = int(top.ids[0, 0, 0]), next(c for c in range(9) if c not in top.ids[0, 0])
    state_BTD = steering.override(lm, hidden_BTD, {kept: 0.25, absent: 0.5}, {})
    moved_V = (lm.unembed(state_BTD) - lm.unembed(hidden_BTD))[0, 0]
    rows_KV = lm.unembed(lm.concepts.known.embedding_KD)
    # the second concept was outside the top-k: it weighed nothing, whatever its sigmoid says
    predicted_V = (0.25 - top.activations[0, 0, 0]) * rows_KV[kept] + 0.5 * rows_KV[absent]
    torch.testing.assert_close(moved_V, predicted_V, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_setting_unknown_concepts_is_not_cancelled_by_the_residual() -> None:
    lm = loud_network()
    hidden_BTD = lm.hidden(some_prompts(1, 5))
    top = lm.concepts(hidden_BTD).top_unknown
    unknown = int(top.ids[0, 2, 1])
    state_BTD = steering.override(lm, hidden_BTD, {}, {unknown: 5.0})
    row_D = lm.concepts.unknown.embedding_UR[unknown] @ lm.concepts.unknown.embedding_RD
    predicted_V = (5.0 - top.activations[0, 2, 1]) * lm.unembed(row_D)
    moved_V = (lm.unembed(state_BTD) - lm.unembed(hidden_BTD))[0, 2]
    torch.testing.assert_close(moved_V, predicted_V, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_setting_concepts_to_what_they_are_changes_nothing() -> None:
    lm = loud_network()
    hidden_BTD = lm.hidden(some_prompts(1, 1))
    parts = lm.concepts(hidden_BTD)
    known, unknown = (
        {int(c): float(v) for c, v in zip(top.ids[0, 0], top.activations[0, 0], strict=True)}
        for top in (parts.top, parts.top_unknown)
    )
    assert torch.equal(steering.override(lm, hidden_BTD, known, unknown), hidden_BTD)


def test_a_concept_the_network_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match=r"concepts \[9\] to steer, but known concepts are 0 … 8"):
        steering.steering(loud_network(), [Change((9,), 1.0)], first_layer=0)


def test_a_concept_that_raises_no_token_cannot_be_calibrated() -> None:
    lm = loud_network()
    with torch.no_grad():
        lm.concepts.known.embedding_KD[0] = 0.0
    with pytest.raises(ValueError, match="raises no token's logit"):
        steering.calibration(lm, steering.direction(lm, [0]), 1.0)


def test_a_layer_beyond_the_network_is_refused() -> None:
    with pytest.raises(ValueError, match="first_layer is 3, but layers are 0 … 2"):
        steering.steering(loud_network(), [Change((0,), 1.0)], first_layer=3)


def test_suppression_covers_the_whole_vocabulary() -> None:
    found = steering.steering(loud_network(), [Change((1,), -1.0)], first_layer=0)
    assert found.suppression_BV.shape == (1, VOCABULARY)
