"""Each term by hand or against its textbook form (method §3.5); L_c is in `test_tiles`."""

import pytest
import torch

from model.forcing import Parts
from model.losses import contribution, dependence, reconstruction
from tests.model import tiny


def parts(n=6, width=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    hidden, known, unknown, truth = torch.randn(4, n, width, generator=generator)
    return Parts(hidden, known, unknown, truth, torch.arange(n) % 2 == 0)


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


@pytest.mark.parametrize("width", [4, 9])
def test_dependence_is_the_formula_per_sequence_whichever_matrices_are_smaller(width):
    own = parts(width=width)
    masked_BT = torch.tensor([[True, True, True, False], [True, False, True, True]])
    total = 0.0
    for rows in (slice(0, 3), slice(3, 6)):
        known = own.known_ND[rows] - own.known_ND[rows].mean(0)
        unknown = own.unknown_ND[rows] - own.unknown_ND[rows].mean(0)
        total += float((unknown.T @ known).square().sum() / (width**2 * 2))
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
