"""Tiles of concepts against whole matrices, and the OR loss against its product (conformance 5)."""

import math

import pytest
import torch
import torch.nn.functional as F

from benchmarks import straightforward
from model import tiles
from model.tiles import Votes, concept_pass, concept_sum, log1mexp

WIDTH, N_CONCEPTS, OUT = 6, 23, 4


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    monkeypatch.setattr(tiles, "MIN_CONCEPTS", 5)
    monkeypatch.setattr(tiles, "TILE", 1)


def problem(n_rows, scale=1.0, dtype=torch.float64):
    draw = torch.Generator().manual_seed(n_rows)
    shapes = ((n_rows, WIDTH), (N_CONCEPTS, WIDTH), (N_CONCEPTS,), (N_CONCEPTS, OUT))
    found = [torch.randn(shape, generator=draw, dtype=dtype) for shape in shapes]
    found[0] *= scale
    return tuple(tensor.requires_grad_() for tensor in found)


def votes(chunks, concepts):
    return Votes(torch.tensor(chunks, dtype=torch.int64), torch.tensor(concepts))


def lone(logits_NK, ballot):
    """The loss of given logits: one query a row."""
    n_rows, n_concepts = logits_NK.shape
    query = torch.eye(n_rows, dtype=logits_NK.dtype)
    nothing = logits_NK.new_zeros(n_concepts, 1)
    return concept_pass(query, logits_NK.T, None, nothing, ballot, n_summed=0).loss


CHUNKS, CONCEPTS = [0, 0, 1, 3, 1], [[0, 22, -1], [2, -1, -1], [5, 6, 7], [1, 2, 10]]


def test_the_or_loss_is_the_product_form():
    logits_NK = torch.randn(5, N_CONCEPTS, generator=torch.Generator().manual_seed(0))
    ballot = votes(CHUNKS, CONCEPTS)
    total = 0.0
    for chunk in (0, 1, 3):
        rows = logits_NK[ballot.chunk_N == chunk].double().sigmoid()
        present = 1.0 - (1.0 - rows).prod(dim=0)
        label = torch.zeros(N_CONCEPTS, dtype=torch.float64)
        label[[concept for concept in CONCEPTS[chunk] if concept >= 0]] = 1.0
        total += float(F.binary_cross_entropy(present, label))
    assert float(lone(logits_NK, ballot)) == pytest.approx(total, rel=1e-6)


@pytest.mark.parametrize("scale", [1.0, 9.0])
@pytest.mark.parametrize("biased", [True, False])
def test_one_pass_gives_loss_sum_and_gradients_of_the_dense_form(scale, biased):
    query, predictor, bias, embedding = problem(9, scale)
    some_bias = bias if biased else None
    ballot = votes(CHUNKS, CONCEPTS)
    found = concept_pass(query, predictor, some_bias, embedding, ballot, n_summed=6)
    logits = F.linear(query, predictor, some_bias)
    loss = straightforward.or_loss(logits[4:], ballot)
    torch.testing.assert_close(found.loss, loss)
    dense = straightforward.dense_sum(query[:6], predictor, some_bias, embedding)
    torch.testing.assert_close(found.sum_NE, dense)
    assert int(found.n_active) == int((logits[:6] > 0).sum())
    inputs = (query, predictor, bias) if biased else (query, predictor)
    wanted = torch.autograd.grad(3.0 * loss, inputs)
    for one, other in zip(torch.autograd.grad(3.0 * found.loss, inputs), wanted, strict=True):
        torch.testing.assert_close(one, other)


def test_single_precision_agrees_with_double():
    single = problem(9, 2.0, torch.float32)
    double = tuple(tensor.detach().double().requires_grad_() for tensor in single)
    found = concept_pass(*single, votes(CHUNKS, CONCEPTS), 0).loss
    exact = straightforward.or_loss(F.linear(*double[:3])[4:], votes(CHUNKS, CONCEPTS))
    assert float(found.detach()) == pytest.approx(float(exact.detach()), rel=1e-6)
    wanted = torch.autograd.grad(exact, double[:3])
    for one, other in zip(torch.autograd.grad(found, single[:3]), wanted, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("extreme", [-1e4, -60.0, -20.0, 20.0, 60.0, 1e4])
def test_extreme_logits_give_finite_losses_and_the_dense_form_s_gradients(extreme):
    logits_NK = torch.full((4, 2), extreme, requires_grad=True)
    ballot = votes([0, 0, 1, 1], [[0, -1], [1, -1]])
    loss = lone(logits_NK, ballot)
    (found,) = torch.autograd.grad(loss, logits_NK)
    expected = straightforward.or_loss(logits_NK, ballot)
    (wanted,) = torch.autograd.grad(expected, logits_NK)
    assert math.isfinite(float(loss.detach()))
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(found, wanted)


def test_a_label_that_was_all_but_excluded_still_pulls():
    logits_NK = torch.full((1, 1), -40.0, requires_grad=True)
    (grad,) = torch.autograd.grad(lone(logits_NK, votes([0], [[0]])), logits_NK)
    assert float(grad) == pytest.approx(-1.0)


def test_log1mexp_is_exact_at_both_ends():
    for value in (1e-12, 1e-3, 0.69, 0.70, 5.0, 30.0):
        exact = math.log(-math.expm1(-value))
        found = float(log1mexp(torch.tensor(value, dtype=torch.float64)))
        assert found == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("scale", [1.0, 20.0])
@pytest.mark.parametrize("n_rows", [0, 1, 7])
def test_the_dense_sum_and_its_gradients_are_autograd_s(scale, n_rows):
    inputs = problem(n_rows, scale)
    weight = torch.randn(n_rows, OUT, dtype=torch.float64)
    found, expected = concept_sum(*inputs), straightforward.dense_sum(*inputs)
    torch.testing.assert_close(found, expected)
    wanted = torch.autograd.grad((expected * weight).sum(), inputs)
    made = torch.autograd.grad((concept_sum(*inputs, expected.detach()) * weight).sum(), inputs)
    for one, again, other in zip(
        torch.autograd.grad((found * weight).sum(), inputs), made, wanted, strict=True
    ):
        torch.testing.assert_close(one, other)
        torch.testing.assert_close(again, other)


def test_nothing_of_rows_times_concepts_is_kept():
    query, predictor, bias, embedding = problem(40)
    kept = []

    def count(tensor):
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        concept_sum(query, predictor, bias, embedding)
        concept_pass(query, predictor, bias, embedding, votes([0, 1], [[1], [2]]), 38)
    assert max(kept) == 40 * WIDTH < 40 * N_CONCEPTS


def test_a_second_backward_through_the_pass_is_refused():
    query, predictor, bias, embedding = problem(5)
    loss = concept_pass(query, predictor, bias, embedding, votes(CHUNKS, CONCEPTS), 0).loss
    torch.autograd.grad(loss, query, retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(loss, query)
