"""What attribution says is held against what masking does."""

import pytest
import torch

from model.input_attribution import attribute
from model.input_attribution_config import InputAttributionConfig
from model.input_masking import curves, effects, foretold, rank_correlation
from model.language_model import LanguageModel
from model.sampling import generate
from model.sampling_config import SamplingConfig
from model.trace import Trace
from tests.model.explained import loud_network, some_prompts


def a_trace(lm: LanguageModel) -> Trace:
    return generate(lm, some_prompts(1, 6), SamplingConfig(n_new=7))[0]


@torch.no_grad()
def logit_of(lm: LanguageModel, trace: Trace, commit: int, masked: list[int]) -> float:
    seen = trace.snapshot(int(trace.group_N[commit]))
    ids_T = seen.ids_T.index_fill(0, torch.tensor(masked, dtype=torch.int64), trace.mask_id)
    return float(lm(ids_T[None])[0, trace.readout_N[commit], trace.token_N[commit]])


def test_a_planted_order_deletes_and_inserts_the_inputs_it_names() -> None:
    lm = loud_network()
    trace = a_trace(lm)
    weight_BT = torch.zeros(1, len(trace.ids_T))
    weight_BT[0, [4, 1]] = torch.tensor([2.0, 1.0])
    weight_BT[0, [0, 2, 3, 5]] = -1.0
    found = curves(lm, trace, [0], weight_BT, counts=(1, 2, 99), n_orders=2, seed=[0])
    whole, nothing = logit_of(lm, trace, 0, []), logit_of(lm, trace, 0, list(range(6)))
    lost = [whole - logit_of(lm, trace, 0, masked) for masked in ([4], [4, 1])]
    regained = [
        logit_of(lm, trace, 0, masked) - nothing for masked in ([0, 1, 2, 3, 5], [0, 2, 3, 5])
    ]
    assert found.deletion_BK[0].tolist() == pytest.approx([*lost, whole - nothing], abs=1e-5)
    assert found.insertion_BK[0].tolist() == pytest.approx([*regained, whole - nothing], abs=1e-5)
    assert float(found.deletion_random_BK[0, 2]) == pytest.approx(whole - nothing, abs=1e-5)


def test_random_orders_are_those_of_the_seed() -> None:
    lm = loud_network()
    trace = a_trace(lm)
    weight_BT = torch.zeros(3, len(trace.ids_T))

    def drawn(seed: int, commits: list[int]) -> torch.Tensor:
        found = curves(lm, trace, commits, weight_BT, counts=(2,), n_orders=3, seed=[seed])
        return found.deletion_random_BK

    torch.testing.assert_close(drawn(1, [0, 3, 5])[[0, 2]], drawn(1, [0, 5]))
    assert not torch.allclose(drawn(1, [3]), drawn(2, [3]))


def test_effects_are_what_the_network_does_without_each_input() -> None:
    lm = loud_network()
    trace = a_trace(lm)
    effect_T = effects(lm, trace, [2])[0]
    whole = logit_of(lm, trace, 2, [])
    inputs = [*range(6), *trace.position_N[:2].tolist()]
    assert sorted(inputs) == (~effect_T.isnan()).nonzero().squeeze(-1).tolist()
    for position in inputs:
        change = logit_of(lm, trace, 2, [position]) - whole
        assert float(effect_T[position]) == pytest.approx(change, abs=1e-5)


def test_one_part_for_each_input_foretells_what_masking_does() -> None:
    lm = loud_network()
    trace = a_trace(lm)
    config = InputAttributionConfig(n_parts=8, tolerance=1e-9, max_evaluations=8 * 64 + 1)
    found = attribute(lm, trace, [0, 2], config)
    said = foretold(found.weight_BT, effects(lm, trace, [0, 2]))
    assert said.rank_B.min() > 0.99
    assert (said.error_B / said.observed_B).max() < 1e-2
    assert float(said.product_B.sum() / said.square_B.sum()) == pytest.approx(1.0, abs=0.01)


def test_comparing_by_hand() -> None:
    nan = torch.nan
    found = foretold(torch.tensor([[1.0, -2, 7, 0]]), torch.tensor([[-2.0, 4, nan, 0]]))
    assert float(found.rank_B) == pytest.approx(1.0)
    assert (float(found.error_B), float(found.observed_B)) == (1.0, 2.0)
    assert float(found.product_B / found.square_B) == 2.0


def test_rank_correlation_by_hand() -> None:
    one, other = torch.tensor([1.0, 2, 3, 4]), torch.tensor([10.0, 30, 20, 40])
    assert float(rank_correlation(one, other)) == pytest.approx(0.8)
    tied = torch.tensor([5.0, 5, 7, 7])
    assert float(rank_correlation(one, tied)) == pytest.approx(0.894427, abs=1e-6)
    assert rank_correlation(one, torch.ones(4)).isnan()
