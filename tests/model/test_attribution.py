"""Concepts of a token add up to its logit, and the check of the sum can fail."""

from dataclasses import replace

import pytest
import torch

from model import attribution
from model.bottleneck import Decomposition
from model.language_model import LanguageModel
from model.sampling import generate
from model.sampling_config import SamplingConfig
from model.steering import override
from model.trace import Trace
from tests.model.explained import loud_network, some_prompts


def a_trace(lm: LanguageModel) -> Trace:
    return generate(lm, some_prompts(1, 6), SamplingConfig(n_new=7))[0]


def test_concept_contributions_sum_to_the_recorded_logit() -> None:
    lm = loud_network()
    trace = a_trace(lm)
    found = attribution.concept_attribution(lm, trace.state_ND, trace.token_N, trace.logit_N)
    assert found.error_N.max() < 1e-4
    assert found.known_Nk.shape == (7, 3)


def test_the_sum_fails_when_the_parts_are_of_another_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lm = loud_network()
    trace, split = a_trace(lm), lm.concepts.forward
    monkeypatch.setattr(lm.concepts, "forward", lambda state_ND: split(state_ND + 0.01))
    found = attribution.concept_attribution(lm, trace.state_ND, trace.token_N, trace.logit_N)
    assert found.error_N.max() > 1e-2


def test_the_sum_fails_when_a_bottleneck_takes_some_of_the_residual_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lm = loud_network()
    trace, split = a_trace(lm), lm.concepts.forward

    def leaking(state_ND: torch.Tensor) -> Decomposition:
        parts = split(state_ND)
        return replace(parts, residual_BTD=0.99 * parts.residual_BTD)

    monkeypatch.setattr(lm.concepts, "forward", leaking)
    found = attribution.concept_attribution(lm, trace.state_ND, trace.token_N, trace.logit_N)
    torch.testing.assert_close(found.error_N, found.residual_N.abs() / 99, atol=1e-4, rtol=1e-2)
    assert found.error_N.max() > 1e-3


@torch.no_grad()
def test_a_contribution_is_what_the_logit_loses_without_the_concept() -> None:
    lm = loud_network()
    trace = a_trace(lm)
    found = attribution.concept_attribution(lm, trace.state_ND, trace.token_N, trace.logit_N)
    concept = int(found.known_ids_Nk[4, 0])
    without_1TD = override(lm, trace.state_ND[None, 4:5], {concept: 0.0}, {})
    logit = lm.unembed(without_1TD)[0, 0, trace.token_N[4]]
    torch.testing.assert_close(trace.logit_N[4] - logit, found.known_Nk[4, 0])


@torch.no_grad()
@pytest.mark.parametrize("rank", [2, None])
def test_unknown_concepts_add_up_to_their_part_in_either_form_of_the_head(
    rank: int | None,
) -> None:
    lm = loud_network(rank=rank)
    trace = a_trace(lm)
    found = attribution.concept_attribution(lm, trace.state_ND, trace.token_N, trace.logit_N)
    torch.testing.assert_close(found.unknown_Nk.sum(-1), found.unknown_N, atol=1e-5, rtol=1e-4)
    concept = int(found.unknown_ids_Nk[2, 1])
    without_1TD = override(lm, trace.state_ND[None, 2:3], {}, {concept: 0.0})
    logit = lm.unembed(without_1TD)[0, 0, trace.token_N[2]]
    torch.testing.assert_close(trace.logit_N[2] - logit, found.unknown_Nk[2, 1])


def test_shares_by_hand() -> None:
    found = attribution.shares(
        torch.tensor([3.0, -1.0]), torch.tensor([1.0, 1.0]), torch.tensor([-1.0, 1.0])
    )
    assert (found.known, found.unknown, found.residual) == (0.5, 0.25, 0.25)
    assert (found.known_signed, found.unknown_signed, found.residual_signed) == (0.5, 0.5, 0.0)
