"""Each term by hand or against its textbook form (method §3.5; conformance 5)."""

import math

import pytest
import torch
import torch.nn.functional as F

from model.diffusion import Batch
from model.forcing import Parts
from model.losses import concept_loss, contribution, dependence, log1mexp, reconstruction
from tests.model import tiny


def chunks(concepts, labelled):
    nothing = torch.zeros(1, 1, dtype=torch.int64)
    return Batch(nothing, nothing, torch.tensor(concepts), torch.tensor(labelled), nothing[0])


def parts(n=6, width=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    hidden, known, unknown, truth = torch.randn(4, n, width, generator=generator)
    return Parts(hidden, known, unknown, truth, torch.arange(n) % 2 == 0)


def test_the_or_loss_is_the_product_form():
    logits_NK = torch.randn(9, 5, generator=torch.Generator().manual_seed(0))
    chunk_N = torch.tensor([0, 0, 1, 1, 1, 3, 3, -1, 0])
    batch = chunks([[0, 4, -1], [2, -1, -1], [1, -1, -1], [1, 2, 3]], [True, True, True, True])
    total = 0.0
    for chunk in (0, 1, 3):
        rows = logits_NK[chunk_N == chunk].double().sigmoid()
        present = 1.0 - (1.0 - rows).prod(dim=0)
        label = torch.zeros(5, dtype=torch.float64)
        label[batch.concepts_CM[chunk][batch.concepts_CM[chunk] >= 0]] = 1.0
        total += float(F.binary_cross_entropy(present, label))
    assert float(concept_loss(logits_NK, chunk_N, batch)) == pytest.approx(total, rel=1e-6)


def test_unlabelled_chunks_and_empty_lists_teach_nothing():
    batch = chunks([[0], [-1]], [False, True])
    logits_NK = torch.zeros(2, 3, requires_grad=True)
    loss = concept_loss(logits_NK, torch.tensor([0, 1]), batch)
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert logits_NK.grad is not None
    assert not bool(logits_NK.grad.any())


@pytest.mark.parametrize("extreme", [-60.0, -20.0, 20.0, 60.0, 1e4])
def test_extreme_logits_give_finite_losses_and_gradients(extreme):
    logits_NK = torch.full((4, 2), extreme, requires_grad=True)
    batch = chunks([[0, -1], [1, -1]], [True, True])
    loss = concept_loss(logits_NK, torch.tensor([0, 0, 1, 1]), batch)
    loss.backward()
    assert logits_NK.grad is not None
    assert math.isfinite(float(loss.detach()))
    assert bool(logits_NK.grad.isfinite().all())


def test_a_label_that_was_all_but_excluded_still_pulls():
    logits_NK = torch.full((1, 1), -40.0, requires_grad=True)
    concept_loss(logits_NK, torch.tensor([0]), chunks([[0]], [True])).backward()
    assert logits_NK.grad is not None
    assert float(logits_NK.grad) == pytest.approx(-1.0)


def test_log1mexp_is_exact_at_both_ends():
    for value in (1e-12, 1e-3, 0.69, 0.70, 5.0, 30.0):
        exact = math.log(-math.expm1(-value))
        found = float(log1mexp(torch.tensor(value, dtype=torch.float64)))
        assert found == pytest.approx(exact, rel=1e-9)


def test_reconstruction_by_hand():
    own = Parts(
        hidden_ND=torch.tensor([[2.0, 0.0], [1.0, 1.0]]),
        known_ND=torch.tensor([[9.0, 9.0], [1.0, 0.0]]),
        unknown_ND=torch.tensor([[1.0, 0.0], [0.0, 0.0]]),
        truth_ND=torch.tensor([[1.0, 2.0], [9.0, 9.0]]),
        supervised_N=torch.tensor([True, False]),
    )
    # Labelled: û (1, 0) against (1, −2); unlabelled: (0, 0) against h − k̂ = (0, 1).
    assert float(reconstruction(own)) == pytest.approx(4.0 / 2 + 1.0 / 2)


def test_dependence_is_the_formula_per_sequence():
    own = parts()
    masked_BT = torch.tensor([[True, True, True, False], [True, False, True, True]])
    total = 0.0
    for rows in (slice(0, 3), slice(3, 6)):
        known = own.known_ND[rows] - own.known_ND[rows].mean(0)
        unknown = own.unknown_ND[rows] - own.unknown_ND[rows].mean(0)
        total += float((unknown.T @ known).square().sum() / (4**2 * 2))
    found = dependence(own, masked_BT, with_residual=False)
    assert float(found) == pytest.approx(total, rel=1e-5)


def test_the_second_term_is_the_dependence_on_the_residual():
    own = parts()
    masked_BT = torch.ones(1, 6, dtype=torch.bool)
    residual = own.hidden_ND - own.known_ND - own.unknown_ND
    other = Parts(own.hidden_ND, own.known_ND, residual, own.truth_ND, own.supervised_N)
    both = dependence(own, masked_BT, with_residual=True)
    one, two = (dependence(p, masked_BT, with_residual=False) for p in (own, other))
    torch.testing.assert_close(both, one + two)


def test_a_sequence_of_one_row_depends_on_nothing():
    masked_BT = torch.tensor([[True, False], [False, False]])
    assert float(dependence(parts(1), masked_BT, with_residual=False)) == 0.0


def test_contribution_by_hand():
    own = Parts(
        hidden_ND=torch.tensor([[1.0, 2.0]]),
        known_ND=torch.tensor([[1.0, 0.0]]),
        unknown_ND=torch.tensor([[-2.0, 0.0]]),
        truth_ND=torch.zeros(1, 2),
        supervised_N=torch.tensor([False]),
    )
    # Residual (2, 2); the target's row (1, 0.5) gives |1| + |−2| named and |3| left over.
    assert float(contribution(own, torch.tensor([[1.0, 0.5]]))) == pytest.approx(0.5)


def test_labels_of_a_batch_stay_inside_the_library():
    assert int(tiny.batch().concepts_CM.max()) < tiny.KNOWN
