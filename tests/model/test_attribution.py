"""Explanations add up, are exact where they claim to be, and say how far they are where not."""

import pytest
import torch

from model import attribution
from model.language_model import LanguageModel
from model.sampling import generate
from model.sampling_config import SamplingConfig
from model.steering import override
from model.trace import Trace
from tests.model.explained import MASK, loud_network, some_prompts


def a_trace(lm: LanguageModel) -> Trace:
    return generate(lm, some_prompts(1, 6), SamplingConfig(n_new=7))[0]


def errors_by_nodes(lm: LanguageModel, trace: Trace, *n_nodes: int) -> list[float]:
    (wanted, _), *_ = attribution.targets(trace, [0, 1])
    found = [
        attribution.integrated_gradients(lm, wanted, n_nodes=n, batch_sequences=64) for n in n_nodes
    ]
    return [attribution.completeness_error(a.missing_B, a.gap_B) for a in found]


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


@torch.no_grad()
def test_a_contribution_is_what_the_logit_loses_without_the_concept() -> None:
    lm = loud_network()
    trace = a_trace(lm)
    found = attribution.concept_attribution(lm, trace.state_ND, trace.token_N, trace.logit_N)
    concept = int(found.known_ids_Nk[4, 0])
    without_1TD = override(lm, trace.state_ND[None, 4:5], {concept: 0.0}, {})
    logit = lm.unembed(without_1TD)[0, 0, trace.token_N[4]]
    torch.testing.assert_close(trace.logit_N[4] - logit, found.known_Nk[4, 0])


def test_shares_by_hand() -> None:
    found = attribution.shares(
        torch.tensor([3.0, -1.0]), torch.tensor([1.0, 1.0]), torch.tensor([-1.0, 1.0])
    )
    assert (found.known, found.unknown, found.residual) == (0.5, 0.25, 0.25)
    assert (found.known_signed, found.unknown_signed, found.residual_signed) == (0.5, 0.5, 0.0)


def test_completeness_error_vanishes_as_nodes_are_added() -> None:
    lm = loud_network()
    few, many, more = errors_by_nodes(lm, a_trace(lm), 2, 64, 256)
    assert few > many > more
    assert more < 2e-3


def test_masked_positions_get_exactly_nothing() -> None:
    lm = loud_network()
    for wanted, _ in attribution.targets(a_trace(lm), list(range(7))):
        found = attribution.integrated_gradients(lm, wanted, n_nodes=3, batch_sequences=5)
        masked_BT = wanted.ids_BT == MASK
        assert masked_BT.any()
        assert (found.weight_BT[masked_BT] == 0).all()
        assert (found.weight_BT[~masked_BT] != 0).all()


def test_replayed_logits_are_the_recorded_ones() -> None:
    for attention in ("block_causal", "causal"):
        lm = loud_network(attention)
        trace = a_trace(lm)
        for wanted, commit_B in attribution.targets(trace, list(range(trace.n_groups))):
            found = attribution.integrated_gradients(lm, wanted, n_nodes=1, batch_sequences=4)
            torch.testing.assert_close(found.logit_B, trace.logit_N[commit_B])


def test_a_target_is_attributed_the_same_whatever_shares_its_batch() -> None:
    lm = loud_network()
    (wanted, _), *_ = attribution.targets(a_trace(lm), [0, 1])
    one = attribution.integrated_gradients(lm, wanted, n_nodes=5, batch_sequences=3)
    other = attribution.integrated_gradients(lm, wanted, n_nodes=5, batch_sequences=100)
    torch.testing.assert_close(one.weight_BT, other.weight_BT)
