import pytest
import torch

from model.language_model import LanguageModel
from tests.model import tiny


def test_the_head_is_the_embedding():
    network = tiny.lm()
    state = torch.randn(tiny.WIDTH)
    torch.testing.assert_close(network.unembed(state), network.embedding.weight @ state)


def test_logits_of_the_parts_sum_to_the_logits_of_the_network():
    network, ids_BT = tiny.lm(), tiny.ids()
    parts = network.concepts(network.hidden(ids_BT))
    known, unknown, residual = (
        network.unembed(part) for part in (parts.known_BTD, parts.unknown_BTD, parts.residual_BTD)
    )
    torch.testing.assert_close(known + unknown + residual, network(ids_BT), atol=1e-4, rtol=1e-4)


def test_the_same_seed_starts_the_same_weights_and_another_others():
    first, again, other = (LanguageModel(tiny.config(), seed) for seed in (3, 3, 4))
    same = [torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True)]
    assert all(same)
    assert not torch.equal(first.embedding.weight, other.embedding.weight)


def test_matrices_start_at_the_papers_deviation_and_branch_ends_below_it():
    network = LanguageModel(tiny.config(width=64, mlp_width=256, n_layers=8))
    end = torch.cat([layer.mlp.c_proj.weight.flatten() for layer in network.backbone.layers])
    start = torch.cat([layer.mlp.c_fc.weight.flatten() for layer in network.backbone.layers])
    assert float(start.detach().std()) == pytest.approx(0.02, rel=0.02)
    assert float(end.detach().std()) == pytest.approx(0.02 / 4, rel=0.02)


def test_a_family_without_concepts_says_so():
    with pytest.raises(ValueError, match="family ar has no concepts"):
        _ = tiny.lm("ar").concepts


def test_an_untied_head_is_its_own_matrix():
    network = tiny.lm(tied=False)
    state = torch.randn(tiny.WIDTH)
    assert network.head is not None
    torch.testing.assert_close(network.unembed(state), network.head.weight @ state)
    assert not torch.equal(network.head.weight, network.embedding.weight)


@pytest.mark.parametrize("rank", [3, None])
def test_without_a_residual_the_concepts_give_the_whole_logit(rank):
    network, ids_BT = tiny.lm(residual=False, rank=rank), tiny.ids()
    parts = network.concepts(network.hidden(ids_BT))
    assert not parts.residual_BTD.any()
    named_BTD = parts.known_BTD + parts.unknown_BTD
    torch.testing.assert_close(network(ids_BT), network.unembed(named_BTD))
