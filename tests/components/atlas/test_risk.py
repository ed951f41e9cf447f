"""The positive-unlabelled risk: its value by hand, its gradient that of the formula."""

import torch
from torch.nn.functional import softplus

from components.atlas.risk import non_negative


def test_the_negative_part_of_the_risk_is_cut_at_zero():
    risk = non_negative(
        torch.tensor([[4.0]]), torch.tensor([[1.0]]), torch.tensor([[-40.0]]), torch.tensor([0.5])
    )
    torch.testing.assert_close(risk, 0.5 * softplus(torch.tensor(-4.0)))


def test_its_gradient_is_that_of_the_formula_written_out():
    """R = π E_P[ℓ(f,+1)] + max(0, E_U[ℓ(f,−1)] − π E_P[ℓ(f,−1)]), ℓ(f,y) = log(1 + e^−yf)."""
    draw = torch.Generator().manual_seed(0)
    labels_PK = torch.tensor([[1.0, 0, 1], [0, 1, 1], [1, 0, 0], [0, 0, 0]])
    prior_K = torch.tensor([0.3, 0.45, 0.1])
    tagged_PK = torch.randn(4, 3, generator=draw).double().requires_grad_()
    # The last concept's unlabelled chunks lie so low that its second part is cut.
    apart_K = torch.tensor([0.0, 0.0, -30.0])
    unlabelled_UK = (torch.randn(5, 3, generator=draw) + apart_K).double().requires_grad_()
    non_negative(tagged_PK, labels_PK, unlabelled_UK, prior_K).backward()
    with torch.no_grad():
        rise_PK, rise_UK = tagged_PK.sigmoid(), unlabelled_UK.sigmoid()
        share_PK = prior_K * labels_PK / labels_PK.sum(0)
        is_open_K = torch.tensor([1.0, 1.0, 0.0])
        expected_PK = share_PK * (-(1 - rise_PK) - is_open_K * rise_PK) / 3
        expected_UK = is_open_K * rise_UK / 5 / 3
    torch.testing.assert_close(tagged_PK.grad, expected_PK.double())
    torch.testing.assert_close(unlabelled_UK.grad, expected_UK.double())


def test_a_concept_without_a_tagged_chunk_has_its_negatives_alone():
    unlabelled_UK = torch.tensor([[0.5], [-1.0]])
    risk = non_negative(torch.zeros(3, 1), torch.zeros(3, 1), unlabelled_UK, torch.tensor([0.2]))
    torch.testing.assert_close(risk, softplus(unlabelled_UK).mean())


def test_over_batches_the_risk_counts_positives_as_the_whole_sample_does():
    """Two batches of two chunks: the only carrier's part is that of one batch of all four."""
    tagged_PK, labels_PK = torch.tensor([[0.7], [-0.3], [1.1], [0.2]]), torch.eye(4)[:, :1]
    unlabelled_UK, prior_K = torch.tensor([[9.0]]), torch.tensor([0.3])
    parts = [
        non_negative(
            tagged_PK[rows], labels_PK[rows], unlabelled_UK, prior_K, n_K=torch.tensor([0.5])
        )
        for rows in (slice(0, 2), slice(2, 4))
    ]
    whole = non_negative(tagged_PK, labels_PK, unlabelled_UK, prior_K)
    torch.testing.assert_close(sum(parts) / 2, whole)
