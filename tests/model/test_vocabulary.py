"""Nats by chunks of rows are those of the whole matrix of logits."""

import pytest
import torch
import torch.nn.functional as F

from model import vocabulary
from model.vocabulary import nats

N_ROWS, WIDTH, VOCABULARY = 11, 6, 17


def problem(dtype=torch.float32):
    draw = torch.Generator().manual_seed(0)
    head = torch.randn(VOCABULARY, WIDTH, generator=draw).to(dtype).requires_grad_()
    state = torch.randn(N_ROWS, WIDTH, generator=draw).requires_grad_()
    target = torch.randint(0, VOCABULARY, (N_ROWS,), generator=draw)
    return head, state, target, torch.rand(N_ROWS, generator=draw)


@pytest.mark.parametrize("rows", [1, 4, 256])
def test_loss_nats_and_gradients_are_those_of_the_whole(rows, monkeypatch):
    monkeypatch.setattr(vocabulary, "MIN_ROWS", rows)
    monkeypatch.setattr(vocabulary, "CHUNK", 1)
    head, state, target, weight = problem()
    found = nats(head, state, target, weight)
    nll_N = F.cross_entropy(state @ head.T, target, reduction="none")
    torch.testing.assert_close(found.nll_N, nll_N.detach())
    torch.testing.assert_close(found.loss, (weight * nll_N).sum())
    wanted = torch.autograd.grad(2.0 * (weight * nll_N).sum(), (head, state))
    for one, other in zip(
        torch.autograd.grad(2.0 * found.loss, (head, state)), wanted, strict=True
    ):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("lowered", [True, False])
def test_low_precision_multiplies_as_autocast_or_the_head_s_type_says(lowered):
    head, state, target, weight = problem(torch.float32 if lowered else torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16, enabled=lowered):
        found = nats(head, state, target, weight)
        logits = F.linear(state.to(head.dtype), head).float()
        expected = (weight * F.cross_entropy(logits, target, reduction="none")).sum()
    torch.testing.assert_close(found.loss, expected)
    wanted = torch.autograd.grad(expected, (head, state))
    for one, other in zip(torch.autograd.grad(found.loss, (head, state)), wanted, strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, rtol=2e-2, atol=2e-3)


def test_extreme_logits_cost_finite_nats():
    head, state, target, weight = problem()
    found = nats(head * 1e4, state, target, weight)
    assert bool(found.nll_N.isfinite().all())
    (grad,) = torch.autograd.grad(found.loss, state)
    assert bool(grad.isfinite().all())


def test_no_row_costs_nothing_and_leaves_a_gradient_of_zero():
    head, state, target, weight = problem()
    nats(head, state[:0], target[:0], weight[:0]).loss.backward()
    assert head.grad is not None
    assert not bool(head.grad.any())


def test_no_logits_are_kept_for_backward(monkeypatch):
    monkeypatch.setattr(vocabulary, "MIN_ROWS", 2)
    head, state, target, weight = problem()
    kept = []

    def count(tensor):
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        nats(head, state, target, weight)
    assert max(kept) == VOCABULARY * WIDTH < N_ROWS * VOCABULARY
