"""The risk of positive-unlabelled learning that stays above zero (paper §4; method §1.4).

Tags are positive-only: a chunk without a concept may still carry it. With prior π_c,

    R_c  =  π_c · E_P[ℓ(f, +1)]  +  max(0, E_U[ℓ(f, −1)] − π_c · E_P[ℓ(f, −1)]),   ℓ logistic,

where P are chunks tagged with c and U is a draw from the whole corpus. The maximum keeps a flexible
head from driving the estimate of the negatives' risk, which cannot be below zero, below it.

Shape suffixes: P tagged chunks   U unlabelled chunks   K concepts
"""

import torch
from torch import Tensor
from torch.nn.functional import softplus


def non_negative(
    tagged_PK: Tensor, labels_PK: Tensor, unlabelled_UK: Tensor, prior_K: Tensor,
    n_K: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The mean over concepts, in nats. A concept without a tagged chunk has its negatives alone.

    `n_K` is how many tagged chunks a concept has: by default as many as carry it here; for a batch,
    as many as it has in a batch on average.
    """
    n_K = labels_PK.sum(0).clamp(min=1.0) if n_K is None else n_K.clamp(min=1e-6)
    as_positive_K = (softplus(-tagged_PK) * labels_PK).sum(0) / n_K
    as_negative_K = (softplus(tagged_PK) * labels_PK).sum(0) / n_K
    rest_K = softplus(unlabelled_UK).mean(0) - prior_K * as_negative_K
    return (prior_K * as_positive_K + rest_K.clamp(min=0.0)).mean()


def logits_of(prior_K: Tensor) -> Tensor:
    """Where a head starts that knows nothing but the priors."""
    return torch.logit(prior_K, eps=1e-6)
