"""The k strongest, streamed, are those of the whole matrix (method §11, conformance 4)."""

import pytest
import torch

from benchmarks.straightforward import merged_top
from model import topk
from model.topk import TopConcepts, activations, top_concepts, top_k, weighted_rows


def problem(n_rows=7, width=5, n_concepts=83, seed=0):
    draw = torch.Generator().manual_seed(seed)
    tensors = (
        torch.randn(n_rows, width, generator=draw),
        torch.randn(n_concepts, width, generator=draw),
        torch.randn(n_concepts, generator=draw),
    )
    return tuple(tensor.requires_grad_() for tensor in tensors)


def test_two_level_top_k_by_hand():
    values, ids = top_k(torch.tensor([[0.1, 0.9, 0.5, 0.7, -3.0, 0.6]]), k=2, group=2)
    assert ids.tolist() == [[1, 3]]
    assert values.tolist() == [[pytest.approx(0.9), pytest.approx(0.7)]]


@pytest.mark.parametrize("group", [1, 2, 3, 32])
@pytest.mark.parametrize("n_concepts", [6, 31, 64, 97, 200])
def test_two_levels_keep_what_one_keeps(group, n_concepts):
    logits_NK = torch.randn(9, n_concepts, generator=torch.Generator().manual_seed(group))
    values, ids = top_k(logits_NK, k=5, group=group)
    expected = logits_NK.topk(5)
    assert torch.equal(values, expected.values)
    assert torch.equal(ids, expected.indices)


@pytest.mark.parametrize("group", [1, 3, 4])
@pytest.mark.parametrize("width", [12, 24, 36])
@pytest.mark.parametrize("n_concepts", [31, 48, 73, 85, 200])
def test_blocks_keep_what_the_whole_keeps(group, width, n_concepts, monkeypatch):
    monkeypatch.setattr(topk, "GROUP", group)
    monkeypatch.setattr(topk, "ROWS", 5)
    monkeypatch.setattr(topk, "BLOCK", 5 * width)
    query, predictor, _ = problem(n_rows=7, n_concepts=n_concepts, seed=width)
    top = top_concepts(query, predictor, None, k=6)
    assert torch.equal(top.ids, (query @ predictor.T).topk(6).indices)


def test_ties_keep_as_many_and_as_large():
    logits_NK = torch.randint(0, 3, (4, 100), generator=torch.Generator().manual_seed(0)).float()
    values, ids = top_k(logits_NK, k=6, group=4)
    assert torch.equal(values, logits_NK.topk(6).values)
    assert torch.equal(logits_NK.gather(1, ids), values)
    assert all(len(set(row)) == 6 for row in ids.tolist())


def test_logits_beyond_the_cut_are_still_ranked():
    query_NQ, predictor_KQ = torch.ones(1, 1), torch.tensor([[16.0], [30.0], [20.0]])
    top = top_concepts(query_NQ, predictor_KQ, None, k=2)
    assert top.ids.tolist() == [[1, 2]]
    torch.testing.assert_close(top.activations, torch.full((1, 2), 15.0).sigmoid())


@pytest.mark.parametrize("biased", [True, False])
def test_tiles_of_rows_change_neither_values_nor_gradients(biased, monkeypatch):
    monkeypatch.setattr(topk, "ROWS", 3)
    monkeypatch.setattr(topk, "BLOCK", 3 * 32)
    query, predictor, bias = problem()
    inputs = (query, predictor, bias) if biased else (query, predictor)
    top = top_concepts(query, predictor, bias if biased else None, k=4)
    logits = query @ predictor.T + (bias if biased else 0.0)
    expected = logits.topk(4)
    assert torch.equal(top.ids, expected.indices)
    torch.testing.assert_close(top.activations, activations(expected.values))
    weight = torch.randn(7, 4, generator=torch.Generator().manual_seed(3))
    found = torch.autograd.grad((top.activations * weight).sum(), inputs)
    wanted = torch.autograd.grad((activations(expected.values) * weight).sum(), inputs)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)


def test_what_is_kept_for_backward_is_twelve_bytes_a_kept_concept():
    query, predictor, bias = problem(n_rows=50, n_concepts=4_000)
    given = {tensor.data_ptr() for tensor in (query, predictor, bias)}
    kept = {}

    def count(tensor):
        if tensor.data_ptr() not in given:
            kept[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        weighted_rows(predictor, top_concepts(query, predictor, bias, k=3))
    # embedding_bag adds three numbers a bag, whatever its size
    assert sum(kept.values()) == 50 * (3 * 12 + 3 * 8)


def test_nothing_moves_a_logit_beyond_the_cut():
    query, predictor = torch.ones(1, 1), torch.tensor([[16.0], [14.0], [-16.0]], requires_grad=True)
    top_concepts(query, predictor, None, k=3).activations.sum().backward()
    assert predictor.grad is not None
    assert (predictor.grad != 0).flatten().tolist() == [False, True, False]


def test_no_row_at_all_gives_zero_gradients():
    query, predictor, bias = problem(n_rows=0)
    weighted_rows(predictor, top_concepts(query, predictor, bias, k=3)).sum().backward()
    assert predictor.grad is not None
    assert not bool(predictor.grad.any())


def test_weighted_rows_by_hand():
    top = TopConcepts(torch.tensor([[2, 0]]), torch.tensor([[0.5, 2.0]]))
    table = torch.tensor([[1.0, 0.0], [9.0, 9.0], [0.0, 4.0]])
    assert weighted_rows(table, top).tolist() == [[2.0, 2.0]]


def test_the_running_merge_that_is_raced_against_keeps_the_same_sets():
    query, predictor, _ = problem(n_rows=3, n_concepts=4_200)
    merged, ours = merged_top(query, predictor, 6), top_concepts(query, predictor, None, 6)
    assert torch.equal(merged.ids.sort().values, ours.ids.sort().values)
