"""How hard each term of the objective pulls: the norm of its own gradient (paper §9.4).

    ‖ ∂ (λ/n · Σ term) / ∂ weights ‖      of every trained term, over all micro-batches and ranks

The network computes the step once more for each term, beside the step itself: gradients are asked
for and handed back, never left on the weights, so nothing that is trained knows of it. The heads'
custom functions give their gradients once, hence a forward pass of its own for each term: up to
four steps' work every `gradient_norms_every` steps, and one whole gradient in float32 at a time.

Shape suffixes: S term of the objective
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from model.objective import Example
from model.terms import Term

Forward = Callable[[Example], Tensor]


def gradient_norms(
    forward: Forward,
    parameters: Sequence[nn.Parameter],
    examples: Sequence[Example],
    weights_S: Tensor,
    add_ranks: Callable[[Tensor], object],
) -> dict[Term, float]:
    """Norm of each term's gradient as it enters the step, before clipping.

    `add_ranks` sums a tensor over the ranks in place; every rank calls it equally often, since the
    terms with a weight are the same everywhere.
    """
    found = {}
    for term in trained(weights_S):
        square = 0.0
        for part in gradient(forward, parameters, examples, term, float(weights_S[term])):
            add_ranks(part)
            square += float(part.square().sum(dtype=torch.float64))
        found[term] = square**0.5
    return found


def trained(weights_S: Tensor) -> list[Term]:
    """The terms that have a weight in this step."""
    return [term for term in Term if weights_S[term] > 0]


def gradient(
    forward: Forward,
    parameters: Sequence[nn.Parameter],
    examples: Sequence[Example],
    term: Term,
    weight: float,
) -> list[Tensor]:
    """This rank's gradient of one term, in float32, in the order of the parameters."""
    whole: list[Tensor] = []
    for example in examples:
        parts = torch.autograd.grad(
            forward(example)[term] * weight, parameters, allow_unused=True, materialize_grads=True
        )
        if not whole:
            whole = [part.float() for part in parts]
        else:
            for total, part in zip(whole, parts, strict=True):
                total += part
    return whole
