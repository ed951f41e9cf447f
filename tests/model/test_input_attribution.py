"""Inputs share out the effect, exactly in the limit, and say how far they are from it."""

import torch

from model import input_attribution
from model.language_model import LanguageModel
from model.sampling import generate
from model.sampling_config import SamplingConfig
from model.trace import Trace
from tests.model.explained import MASK, loud_network, some_prompts


def a_trace(lm: LanguageModel) -> Trace:
    return generate(lm, some_prompts(1, 6), SamplingConfig(n_new=7))[0]


def errors_by_nodes(lm: LanguageModel, trace: Trace, *n_nodes: int) -> list[float]:
    (wanted, _), *_ = input_attribution.targets(trace, [0, 1])
    found = [
        input_attribution.integrated_gradients(lm, wanted, n_nodes=n, batch_sequences=64)
        for n in n_nodes
    ]
    return [input_attribution.completeness_error(a.missing_B, a.gap_B) for a in found]


def test_completeness_error_vanishes_as_nodes_are_added() -> None:
    lm = loud_network()
    few, many, more = errors_by_nodes(lm, a_trace(lm), 2, 64, 256)
    assert few > many > more
    assert more < 2e-3


def test_masked_positions_get_exactly_nothing() -> None:
    lm = loud_network()
    for wanted, _ in input_attribution.targets(a_trace(lm), list(range(7))):
        found = input_attribution.integrated_gradients(lm, wanted, n_nodes=3, batch_sequences=5)
        masked_BT = wanted.ids_BT == MASK
        assert masked_BT.any()
        assert (found.weight_BT[masked_BT] == 0).all()
        assert (found.weight_BT[~masked_BT] != 0).all()


def test_replayed_logits_are_the_recorded_ones() -> None:
    for attention in ("block_causal", "causal"):
        lm = loud_network(attention)
        trace = a_trace(lm)
        for wanted, commit_B in input_attribution.targets(trace, list(range(trace.n_groups))):
            found = input_attribution.integrated_gradients(lm, wanted, n_nodes=1, batch_sequences=4)
            torch.testing.assert_close(found.logit_B, trace.logit_N[commit_B])


def test_a_target_is_attributed_the_same_whatever_shares_its_batch() -> None:
    lm = loud_network()
    (wanted, _), *_ = input_attribution.targets(a_trace(lm), [0, 1])
    one = input_attribution.integrated_gradients(lm, wanted, n_nodes=5, batch_sequences=3)
    other = input_attribution.integrated_gradients(lm, wanted, n_nodes=5, batch_sequences=100)
    torch.testing.assert_close(one.weight_BT, other.weight_BT)


def test_votes_of_targets_by_hand() -> None:
    lm = loud_network()
    trace = a_trace(lm)
    weight_BT = torch.zeros(2, len(trace.ids_T))
    weight_BT[:, :8] = torch.tensor([[3.0, -1, 0, 0, 0, 0, 4, 0], [0, 0, 0, 0, 0, 0, -2, 2]])
    found = input_attribution.InputAttribution(weight_BT, torch.zeros(2), torch.zeros(2))

    def votes(scope: input_attribution.Scope, sign: input_attribution.Sign) -> list[float]:
        vote_T = input_attribution.aggregate(found, trace, scope=scope, sign=sign)
        return vote_T[[0, 1, 6, 7]].tolist()

    assert votes("prompt", "signed") == [0.375, -0.125, 0, 0]
    assert votes("generated", "signed") == [0, 0, 0.25, 0.25]
    assert votes("generated", "absolute") == [0, 0, 0.75, 0.25]
    assert votes("all", "signed") == [0.1875, -0.0625, 0, 0.25]
