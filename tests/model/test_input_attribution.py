"""Inputs share out the effect, exactly in the limit, and say how far they are from it."""

import dataclasses

import pytest
import torch

from model.directions import ConceptRef
from model.input_attribution import (
    InputAttribution,
    Scope,
    Sign,
    aggregate,
    attribute,
    completeness_error,
)
from model.input_attribution_config import InputAttributionConfig
from model.language_model import LanguageModel
from model.replay import logits, replays, slopes
from model.sampling import generate
from model.sampling_config import SamplingConfig
from model.steering import Change, steering
from model.topk import TopConcepts
from model.trace import Trace
from tests.model.explained import MASK, loud_network, some_prompts

UNREACHABLE = 1e-12
NO_CONCEPTS = TopConcepts(torch.zeros(2, 0, dtype=torch.int64), torch.zeros(2, 0))


def a_trace(lm: LanguageModel) -> Trace:
    return generate(lm, some_prompts(1, 6), SamplingConfig(n_new=7))[0]


def exactly(n_panels: int, n_parts: int = 1) -> InputAttributionConfig:
    """So many panels, whatever they leave."""
    return InputAttributionConfig(
        n_parts=n_parts, tolerance=UNREACHABLE, max_evaluations=n_panels * n_parts + 1
    )


@pytest.fixture
def linear(monkeypatch: pytest.MonkeyPatch) -> LanguageModel:
    """A network whose state is the mean of its embeddings so far: logits are linear in them."""
    lm = loud_network()

    def read(embedded_BTD: torch.Tensor, readout_BN: torch.Tensor, _: object) -> torch.Tensor:
        return embedded_BTD.mean(1, keepdim=True).expand(-1, readout_BN.shape[1], -1)

    monkeypatch.setattr(lm.backbone, "read", read)
    return lm


def a_linear_trace(lm: LanguageModel) -> Trace:
    """Tokens 7 and 9, then 11 and 20 of one pass, at positions 3 and 2 of eight."""
    ids_T = torch.tensor([7, 9, 20, 11, MASK, MASK, MASK, MASK])
    seen_T = ids_T.index_fill(0, torch.tensor([2, 3]), MASK)
    state_D = lm.embedding(seen_T).detach().mean(0)
    return Trace(
        ids_T=ids_T, n_prompt=2, end=8, stopped=False, mask_id=MASK,
        group_N=torch.tensor([0, 0]), position_N=torch.tensor([3, 2]),
        token_N=torch.tensor([11, 20]), logit_N=lm.unembed(state_D)[[11, 20]].detach(),
        confidence_N=torch.ones(2), state_ND=state_D.repeat(2, 1),
        seen_N=torch.tensor([8, 8]), readout_N=torch.tensor([3, 2]),
        given_T=torch.arange(8) < 2, steering=None, guidance=0.0, bare_ND=torch.zeros(2, 0),
        known=NO_CONCEPTS, unknown=NO_CONCEPTS,
    )  # fmt: skip


@pytest.mark.parametrize("n_parts", [1, 2])
def test_inputs_of_a_linear_network_by_hand(linear: LanguageModel, n_parts: int) -> None:
    found = attribute(linear, a_linear_trace(linear), [1, 0], exactly(1, n_parts))
    weight_VD = linear.embedding.weight.detach()
    step_2D = (weight_VD[[7, 9]] - weight_VD[MASK]) / 8
    torch.testing.assert_close(found.weight_BT[:, :2], weight_VD[[20, 11]] @ step_2D.T)
    assert (found.weight_BT[:, 2:] == 0).all()
    assert found.missing_B.max() < 1e-5


def test_completeness_error_vanishes_as_passes_are_added() -> None:
    lm = loud_network()
    trace = a_trace(lm)
    errors = []
    for n_panels in (2, 8, 256):
        found = attribute(lm, trace, [0, 1, 4], exactly(n_panels))
        errors.append(completeness_error(found.missing_B, found.gap_B))
        assert (found.evaluations_B == n_panels + 1).all()
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-3


def test_a_target_is_done_within_the_tolerance_or_said_not_to_be() -> None:
    lm = loud_network()
    trace = a_trace(lm)
    strict = InputAttributionConfig(tolerance=0.01, max_evaluations=33)
    found = attribute(lm, trace, range(7), strict)
    torch.testing.assert_close(found.missing_B <= 0.01 * found.gap_B.abs(), found.reached_B)
    assert set(found.evaluations_B.tolist()) == {9, 17, 33}
    assert (found.evaluations_B[~found.reached_B] == 33).all()


def test_halving_panels_is_the_trapezoid_rule_of_the_last_count() -> None:
    lm = loud_network()
    trace = a_trace(lm)
    (replay,) = replays(lm, trace, [3])
    scale_JT = torch.linspace(0, 1, 17)[:, None].expand(-1, replay.inputs_ST.shape[1])
    slope_JT = slopes(lm, replay, torch.zeros(17).long(), scale_JT, 17).slope_JPT[:, 0]
    found = attribute(lm, trace, [3], exactly(16))
    by_hand_T = torch.trapezoid(slope_JT, dx=1 / 16, dim=0)
    torch.testing.assert_close(found.weight_BT[0, : len(by_hand_T)], by_hand_T)


def test_jumps_of_a_network_without_a_residual_are_told_as_missing() -> None:
    lm = loud_network()
    assert lm.bottleneck is not None
    lm.bottleneck.config = lm.bottleneck.config.model_copy(update={"residual": False})
    found = attribute(lm, a_trace(lm), range(7), exactly(64))
    summed_B = found.weight_BT.sum(1)
    torch.testing.assert_close((summed_B - found.gap_B).abs(), found.missing_B)
    assert not found.reached_B.any()
    assert completeness_error(found.missing_B, found.gap_B) > 0.5


def test_weights_of_each_part_add_up_to_what_masking_the_part_costs() -> None:
    lm = loud_network()
    found = attribute(lm, a_trace(lm), [0, 5], exactly(200, n_parts=4))
    assert completeness_error(found.missing_B, found.gap_B) < 1e-3


def test_masked_positions_get_exactly_nothing() -> None:
    lm = loud_network()
    trace = a_trace(lm)
    found = attribute(lm, trace, range(7), exactly(3))
    for commit in range(7):
        seen_T = trace.snapshot(commit).ids_T
        masked_T = torch.ones(len(trace.ids_T), dtype=torch.bool)
        masked_T[: len(seen_T)] = seen_T == MASK
        assert masked_T.any()
        assert (found.weight_BT[commit, masked_T] == 0).all()
        assert (found.weight_BT[commit, ~masked_T] != 0).all()


@pytest.mark.parametrize("attention", ["block_causal", "causal"])
def test_replayed_logits_are_the_recorded_ones(attention: str) -> None:
    lm = loud_network(attention)
    trace = a_trace(lm)
    found = attribute(lm, trace, range(trace.n_groups), exactly(1))
    torch.testing.assert_close(found.logit_B, trace.logit_N)


def a_strange_trace(lm: LanguageModel, guidance: float) -> Trace:
    """Steered for a while and throughout, several tokens a step, a blank filled."""
    changes = [
        Change((ConceptRef("known", 3),), 9.0, positions="generated", first_tokens=4, layers=0),
        Change((ConceptRef("known", 5),), 4.0, "suppress", layers=1),
    ]
    config = SamplingConfig(n_new=9, guidance=guidance, threshold=0.1)
    prompt_P = some_prompts(1, 6)[0]
    if lm.config.backbone.attention == "block_causal":
        prompt_P = prompt_P.index_fill(0, torch.tensor([3]), MASK)
    return generate(lm, [prompt_P], config, steering=steering(lm, [changes]))[0]


@pytest.mark.parametrize(
    ("attention", "guidance"), [("block_causal", 0.0), ("block_causal", 1.5), ("causal", 0.0)]
)
def test_steered_and_guided_commits_are_replayed_and_add_up(
    attention: str, guidance: float
) -> None:
    lm = loud_network(attention)
    trace = a_strange_trace(lm, guidance)
    n_commits = len(trace.token_N)
    found = attribute(lm, trace, range(n_commits), exactly(1))
    torch.testing.assert_close(found.logit_B, trace.logit_N, atol=1e-4, rtol=1e-5)
    some = attribute(lm, trace, [0, n_commits - 1], exactly(256))
    assert completeness_error(some.missing_B, some.gap_B) < 5e-3


def test_guidance_weighs_the_attributions_of_both_passes() -> None:
    lm = loud_network()
    (guided,) = replays(lm, a_strange_trace(lm, 1.5), [1])
    scale_1T = torch.full((1, guided.inputs_ST.shape[1]), 0.5)
    zero = torch.zeros(1, dtype=torch.int64)
    both = [slopes(lm, dataclasses.replace(guided, branches=(branch,)), zero, scale_1T, 1)
            for branch in guided.branches]  # fmt: skip
    together = slopes(lm, guided, zero, scale_1T, 1)
    assert [branch.share for branch in guided.branches] == [2.5, -1.5]
    torch.testing.assert_close(together.slope_JPT, both[0].slope_JPT + both[1].slope_JPT)
    given_T = a_strange_trace(lm, 1.5).given_T
    assert (both[1].slope_JPT[..., given_T[: scale_1T.shape[1]]] == 0).all()


def test_commits_of_one_pass_share_it_and_keep_their_own_weights() -> None:
    lm = loud_network()
    trace = a_strange_trace(lm, 0.0)
    group = int(trace.group_N.bincount().argmax())
    mine = (trace.group_N == group).nonzero().squeeze(-1).tolist()
    assert len(mine) > 1
    together = attribute(lm, trace, mine, exactly(4))
    alone = torch.cat([attribute(lm, trace, [one], exactly(4)).weight_BT for one in mine])
    torch.testing.assert_close(together.weight_BT, alone)


def test_an_input_left_out_is_the_mask() -> None:
    lm = loud_network()
    trace = a_trace(lm)
    (replay,) = replays(lm, trace, [0])
    kept_1T = replay.inputs_ST & (torch.arange(8) != 2)
    ids_1T = replay.branches[0].ids_ST.index_fill(1, torch.tensor([2]), MASK)
    found = logits(lm, replay, torch.tensor([0]), kept_1T, 1)
    expected = lm(ids_1T)[0, trace.readout_N[0], trace.token_N[0]]
    torch.testing.assert_close(found[0, 0], expected)


def test_a_target_is_attributed_the_same_whatever_shares_its_batch() -> None:
    lm = loud_network()
    trace = a_trace(lm)
    alone = attribute(lm, trace, [1], exactly(5))
    config = exactly(5).model_copy(update={"batch_sequences": 4})
    among = attribute(lm, trace, [6, 1, 0], config)
    torch.testing.assert_close(alone.weight_BT[0], among.weight_BT[1])


def test_the_trace_of_another_network_is_refused() -> None:
    trace = a_trace(loud_network())
    with pytest.raises(ValueError, match="the trace is not this network's"):
        attribute(loud_network(seed=2), trace, [0], exactly(1))
    narrow = dataclasses.replace(trace, state_ND=trace.state_ND[:, :5])
    with pytest.raises(ValueError, match="a trace of a network of width 5"):
        attribute(loud_network(), narrow, [0], exactly(1))


def test_a_commit_the_trace_does_not_have_is_refused() -> None:
    lm = loud_network()
    trace = a_trace(lm)
    for commits in ([0, 7], [-1], []):
        with pytest.raises(ValueError, match="the trace has commits 0 … 6"):
            attribute(lm, trace, commits, exactly(1))


def test_damaged_weights_are_noticed() -> None:
    lm = loud_network()
    trace = a_trace(lm)
    with torch.no_grad():
        lm.embedding.weight[int(trace.token_N[2])] = torch.nan
    with pytest.raises(ValueError, match="not finite; are the weights damaged"):
        attribute(lm, trace, [2], exactly(1))


def test_a_limit_that_leaves_a_part_without_a_pass_is_refused() -> None:
    with pytest.raises(ValueError, match="allow 6 or more"):
        InputAttributionConfig(n_parts=5, max_evaluations=5)


def test_votes_of_targets_by_hand() -> None:
    lm = loud_network()
    trace = a_trace(lm)
    weight_BT = torch.zeros(2, len(trace.ids_T))
    weight_BT[:, :8] = torch.tensor([[3.0, -1, 0, 0, 0, 0, 4, 0], [0, 0, 0, 0, 0, 0, -2, 2]])
    nothing_B = torch.zeros(2)
    found = InputAttribution(weight_BT, *[nothing_B] * 3, nothing_B.long(), nothing_B.bool())

    def votes(scope: Scope, sign: Sign) -> list[float]:
        vote_T = aggregate(found, trace, scope=scope, sign=sign)
        return vote_T[[0, 1, 6, 7]].tolist()

    assert votes("prompt", "signed") == [0.375, -0.125, 0, 0]
    assert votes("generated", "signed") == [0, 0, 0.25, 0.25]
    assert votes("generated", "absolute") == [0, 0, 0.75, 0.25]
    assert votes("all", "signed") == [0.1875, -0.0625, 0, 0.25]
