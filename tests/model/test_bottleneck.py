import pytest
import torch

from model.bottleneck import ConceptBottleneck
from model.config import BottleneckConfig
from model.topk import activations

CONFIG = BottleneckConfig(n_known=8, n_unknown=12, rank=3, top_k=2, top_k_unknown=5)
WIDTH = 16


def bottleneck(config=CONFIG):
    found = ConceptBottleneck(config, WIDTH)
    for parameter in found.parameters():
        torch.nn.init.normal_(parameter)
    return found


def test_keeping_every_concept_is_the_dense_sum():
    config = BottleneckConfig(n_known=8, n_unknown=12, rank=3, top_k=8, top_k_unknown=12)
    heads, hidden_ND = bottleneck(config), torch.randn(5, WIDTH)
    for head in (heads.known, heads.unknown):
        torch.testing.assert_close(head.combine(head.top(hidden_ND)), head.dense(hidden_ND))


def test_the_factorised_unknown_head_is_the_materialised_one():
    head, hidden_ND = bottleneck().unknown, torch.randn(7, WIDTH)
    predictor_UD = head.predictor_UR @ head.predictor_RD
    embedding_UD = head.embedding_UR @ head.embedding_RD
    logits_NU = hidden_ND @ predictor_UD.T
    torch.testing.assert_close(head.logits(hidden_ND), logits_NU, atol=1e-4, rtol=1e-4)
    dense_ND = activations(logits_NU) @ embedding_UD
    torch.testing.assert_close(head.dense(hidden_ND), dense_ND, atol=1e-4, rtol=1e-4)
    kept = logits_NU.topk(5, dim=1).indices
    masked_NU = torch.zeros_like(logits_NU).scatter_(1, kept, value=1.0)
    sparse_ND = (activations(logits_NU) * masked_NU) @ embedding_UD
    torch.testing.assert_close(head.combine(head.top(hidden_ND)), sparse_ND, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(head.rows(torch.tensor([4])), embedding_UD[[4]])


def test_concepts_outside_the_top_weigh_nothing():
    heads, hidden_BTD = bottleneck(), torch.randn(1, 1, WIDTH)
    parts = heads(hidden_BTD)
    kept = sum(
        weight * heads.known.embedding_KD[concept]
        for concept, weight in zip(
            parts.top.ids.flatten(), parts.top.activations.flatten(), strict=True
        )
    )
    torch.testing.assert_close(parts.known_BTD.flatten(), kept)


def test_the_unknown_head_sends_no_gradient_into_the_state():
    hidden_BTD = torch.randn(1, 3, WIDTH, requires_grad=True)
    bottleneck()(hidden_BTD).unknown_BTD.sum().backward()
    assert hidden_BTD.grad is None


@pytest.mark.parametrize("prevalence", [0.02, 0.3])
def test_the_or_over_a_chunk_starts_at_the_prevalence(prevalence):
    heads = bottleneck()
    heads.known.start_at(torch.full((8,), prevalence), tokens_per_chunk=50.0)
    assert heads.known.bias_K is not None
    per_token = heads.known.bias_K.detach().sigmoid()[0]
    some = 1.0 - float((1.0 - per_token) ** 50)
    assert some == pytest.approx(prevalence, rel=0.2)


def test_a_head_without_bias_ignores_prevalence():
    heads = ConceptBottleneck(CONFIG.model_copy(update={"known_bias": False}), WIDTH)
    heads.known.start_at(torch.full((8,), 0.1), tokens_per_chunk=50.0)
    assert heads.known.bias_K is None


def test_the_dense_unknown_head_is_the_plain_formula():
    config = BottleneckConfig(n_known=5, n_unknown=9, rank=None, top_k=2, top_k_unknown=9)
    bottleneck = ConceptBottleneck(config, width=6)
    for parameter in bottleneck.parameters():
        torch.nn.init.normal_(parameter)
    hidden_ND = torch.randn(4, 6)
    head = bottleneck.unknown
    expected_ND = (hidden_ND @ head.predictor_UD.T).sigmoid() @ head.embedding_UD
    torch.testing.assert_close(bottleneck(hidden_ND).unknown_BTD, expected_ND)
