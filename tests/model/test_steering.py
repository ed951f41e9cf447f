"""Steering and interventions: calibrated, one-sided where they should be, nothing at strength 0."""

import pytest
import torch

from model import steering
from model.directions import (
    ConceptRef,
    calibration,
    direction,
    known,
    suppression_mask,
    toward,
)  # fmt: skip
from model.sampling import generate
from model.sampling_config import SamplingConfig
from tests.model.explained import loud_network, some_prompts

Change, GIVEN, MASKED = steering.Change, steering.GIVEN, steering.MASKED


@torch.no_grad()
def test_calibrated_direction_moves_its_top_token_by_the_strength() -> None:
    lm = loud_network()
    for concept in range(3):
        gain = calibration(lm, known(concept), 8.0)
        raised_V = toward(lm, gain * direction(lm, known(concept)))
        torch.testing.assert_close(raised_V.max(), torch.tensor(8.0))


@torch.no_grad()
def test_a_group_steers_along_the_sum_of_its_members() -> None:
    lm = loud_network()
    embedding_KD = lm.concepts.known.embedding_KD
    summed_D = embedding_KD[2] + embedding_KD[5]
    torch.testing.assert_close(direction(lm, [*known(2), *known(5)]), summed_D / summed_D.norm())


def test_suppression_raises_no_logit_and_lowers_the_tokens_of_the_concept() -> None:
    lm = loud_network()
    found = steering.steering(lm, [[Change(known(4), 6.0, "suppress")], [Change(known(4), 6.0)]])
    suppression_BV = found.suppression(torch.arange(2), torch.tensor([0, 3]))
    assert suppression_BV is not None
    toward_V = toward(lm, direction(lm, known(4)))
    assert (suppression_BV[0] >= 0).all()
    torch.testing.assert_close(suppression_BV[0].max(), torch.tensor(6.0))
    assert ((suppression_BV[0] > 0) == (toward_V > 0)).all()
    assert (suppression_BV[1] == 0).all()


@pytest.mark.parametrize("attention", ["block_causal", "causal"])
def test_strength_zero_is_the_unsteered_network_bit_for_bit(attention: str) -> None:
    lm, prompts_BP = loud_network(attention), some_prompts(3, 10)
    config = SamplingConfig(n_new=15, temperature=1.0)
    nothing = steering.steering(lm, [[Change(known(c), 0.0)] for c in range(3)])
    steered = generate(lm, prompts_BP, config, steering=nothing)
    for trace, plain in zip(steered, generate(lm, prompts_BP, config), strict=True):
        assert torch.equal(trace.ids_T, plain.ids_T)
        assert torch.equal(trace.logit_N, plain.logit_N)


@pytest.mark.parametrize("attention", ["block_causal", "causal"])
def test_a_row_is_steered_by_its_own_change_alone(attention: str) -> None:
    lm, prompts_BP = loud_network(attention), some_prompts(2, 10)
    changes = [[], [Change(known(3), 30.0, layers=1)]]
    steered = generate(
        lm, prompts_BP, SamplingConfig(n_new=12), steering=steering.steering(lm, changes)
    )
    plain = generate(lm, prompts_BP, SamplingConfig(n_new=12))
    assert torch.equal(steered[0].ids_T, plain[0].ids_T)
    assert not torch.equal(steered[1].ids_T, plain[1].ids_T)


@pytest.mark.parametrize("attention", ["block_causal", "causal"])
@pytest.mark.parametrize("positions", ["masked", "generated", "all"])
@torch.no_grad()
def test_the_cache_holds_what_a_pass_over_the_whole_text_would_give(
    attention: str, positions: steering.Positions
) -> None:
    lm, config = loud_network(attention), SamplingConfig(n_new=17)
    for_while = Change(known(3), 9.0, positions=positions, first_tokens=4, layers=(0, 2))
    throughout = Change(known(5), 4.0, "suppress", layers=1)
    found = steering.steering(lm, [[throughout], [for_while, throughout]])
    traces = generate(lm, some_prompts(2, 10), config, steering=found)
    for row, trace in enumerate(traces):
        for group in range(trace.n_groups):
            seen = trace.snapshot(group)
            where_T = steering.turns(
                seen.ids_T == trace.mask_id, trace.readout_N, trace.group_N, group
            )
            written_1 = (trace.group_N < group).sum()[None]
            injection = found.of(row).injection(torch.tensor([0]), where_T[None], written_1)
            hidden_TD = lm.hidden(seen.ids_T[None], injection=injection)[0]
            torch.testing.assert_close(
                hidden_TD[seen.readout_N], trace.state_ND[seen.commits_N], atol=1e-5, rtol=1e-5
            )


def additions(change: Change, where: list[list[int]], written: list[int]) -> list[list[bool]]:
    found = steering.steering(loud_network(), [[change]] * len(where))
    rows_A = torch.arange(len(where))
    injection = found.injection(rows_A, torch.tensor(where), torch.tensor(written))
    assert injection is not None
    anywhere: list[list[bool]] = (injection.by_layer[2] != 0).any(-1).tolist()
    return anywhere


def test_a_schedule_counts_the_tokens_of_each_row_by_itself() -> None:
    change = Change(known(1), 5.0, first_tokens=3)
    where = [[GIVEN, MASKED, MASKED], [GIVEN, 0, MASKED]]
    assert additions(change, where, [2, 3]) == [[False, True, True], [False, False, False]]


def test_what_was_written_while_the_schedule_was_on_keeps_its_addition() -> None:
    where = [[GIVEN, 0, 3, MASKED]]
    while_on = Change(known(1), 5.0, first_tokens=2, positions="generated")
    assert additions(while_on, where, [4]) == [[False, True, False, False]]
    everywhere = Change(known(1), 5.0, positions="all")
    assert additions(everywhere, where, [4]) == [[True, True, True, True]]


def test_replacing_suppresses_one_concept_and_amplifies_the_other() -> None:
    lm, of_both = loud_network(), (torch.tensor([0]), torch.tensor([[MASKED]]), torch.tensor([0]))
    one = steering.steering(lm, [[Change(known(2), 5.0, "replace", instead=known(6))]])
    two = steering.steering(lm, [[Change(known(2), 5.0, "suppress"), Change(known(6), 5.0)]])
    added, expected = one.injection(*of_both), two.injection(*of_both)
    assert added is not None
    assert expected is not None
    torch.testing.assert_close(added.by_layer[0], expected.by_layer[0])
    masks = [found.suppression(of_both[0], of_both[2]) for found in (one, two)]
    torch.testing.assert_close(masks[0], masks[1])


def test_every_member_of_a_group_is_masked_and_a_shared_token_once() -> None:
    lm = loud_network()
    group = [*known(2), *known(5)]
    masks = [suppression_mask(lm, known(concept), 6.0) for concept in (2, 5)]
    torch.testing.assert_close(suppression_mask(lm, group, 6.0), torch.maximum(*masks))
    assert not torch.equal(masks[0], masks[1])


def test_an_unknown_concept_steers_along_the_product_of_its_thin_matrices() -> None:
    lm = loud_network()
    head = lm.concepts.unknown
    row_D = head.embedding_UR[11] @ head.embedding_RD
    found_D = direction(lm, [ConceptRef("unknown", 11)])
    torch.testing.assert_close(found_D, (row_D / row_D.norm()).detach())


@pytest.mark.parametrize("strength", [1e9, float("nan"), -1.0])
def test_a_strength_beyond_the_limit_is_refused(strength: float) -> None:
    with pytest.raises(ValueError, match=f"strength of {strength}: .* from 0 to 1000"):
        Change(known(0), strength)


def test_wishes_that_name_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="name at least one concept"):
        Change((), 1.0)
    with pytest.raises(ValueError, match="others instead for replace alone"):
        Change(known(1), 1.0, "replace")
    with pytest.raises(ValueError, match="first 0 tokens"):
        Change(known(1), 1.0, first_tokens=0)


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
    with pytest.raises(ValueError, match=r"known concept 9 to steer, but known concepts are 0 … 8"):
        steering.steering(loud_network(), [[Change(known(9), 1.0)]])


def test_a_concept_that_raises_no_token_cannot_be_calibrated() -> None:
    lm = loud_network()
    with torch.no_grad():
        lm.concepts.known.embedding_KD[0] = 0.0
    with pytest.raises(ValueError, match="raises no token's logit"):
        calibration(lm, known(0), 1.0)


def test_a_layer_beyond_the_network_is_refused() -> None:
    with pytest.raises(ValueError, match="steering at layers 3, but layers are 0 … 2"):
        steering.steering(loud_network(), [[Change(known(0), 1.0, layers=3)]])
