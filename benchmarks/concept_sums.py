"""Sums over all 33,732 known concepts, a tile at a time, against whole matrices and autograd.

    chunk-OR loss    512 tokens of 8 chunks with 16 labels each: loss and gradients
    dense sum        512 tokens: forward and backward

at widths 256 and 1,024. Products are counted bare: three for the loss, six for the sum.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from benchmarks import straightforward
from benchmarks.measure import Action, Contest, memory, race
from model.tiles import Votes, concept_pass, concept_sum

N_TOKENS, N_CONCEPTS, N_CHUNKS, N_LABELS = 512, 33_732, 8, 16
WIDE = 1_024


def contests() -> Iterator[Contest]:
    """Loss and sum at width 256 with their memory, and the loss at width 1,024."""
    for name, target, limit in (("loss", 1.4, 1.1), ("sum", None, 1.25)):
        yield _contest(name, target, limit, 256)
    yield _contest("loss", None, 1.1, WIDE)


def contestants(width: int = 256) -> dict[str, Action]:
    """Both computations, either way, with their gradients; and their bare products."""
    draw = torch.Generator().manual_seed(0)
    query = torch.randn(N_TOKENS, width, generator=draw).requires_grad_()
    predictor = (0.05 * torch.randn(N_CONCEPTS, width, generator=draw)).requires_grad_()
    embedding = (0.05 * torch.randn(N_CONCEPTS, width, generator=draw)).requires_grad_()
    concepts = torch.randint(0, N_CONCEPTS, (N_CHUNKS, N_LABELS), generator=draw)
    ballot = Votes(torch.arange(N_TOKENS) * N_CHUNKS // N_TOKENS, concepts)
    weight = torch.randn(N_TOKENS, width, generator=draw)

    def loss_reference() -> tuple[Tensor, ...]:
        loss = straightforward.or_loss(query @ predictor.T, ballot)
        return loss, *torch.autograd.grad(loss, (query, predictor))

    def loss() -> tuple[Tensor, ...]:
        found = concept_pass(query, predictor, None, embedding, ballot, n_summed=0).loss
        return found, *torch.autograd.grad(found, (query, predictor))

    def sum_reference() -> tuple[Tensor, ...]:
        total = straightforward.dense_sum(query, predictor, None, embedding)
        return total, *torch.autograd.grad(total, (query, predictor, embedding), weight)

    def sum_() -> tuple[Tensor, ...]:
        total = concept_sum(query, predictor, None, embedding)
        return total, *torch.autograd.grad(total, (query, predictor, embedding), weight)

    @torch.no_grad()
    def loss_products() -> object:
        logits = query @ predictor.T
        return logits.T @ query, logits @ predictor

    @torch.no_grad()
    def sum_products() -> object:
        logits = query @ predictor.T
        slope = weight @ embedding.T
        return logits @ embedding, logits.T @ weight, slope.T @ query, slope @ predictor

    return {
        "loss_reference": loss_reference,
        "loss": loss,
        "loss_products": loss_products,
        "sum_reference": sum_reference,
        "sum": sum_,
        "sum_products": sum_products,
    }


def _contest(name: str, target: float | None, limit: float, width: int) -> Contest:
    found = contestants(width)
    off = max(
        float((one - other).detach().norm() / one.detach().norm())
        for one, other in zip(found[f"{name}_reference"](), found[name](), strict=True)
    )
    title = {"loss": "chunk-OR loss with gradients", "sum": "dense sum with gradients"}[name]
    return race(
        f"{title}, width {width}", found[f"{name}_reference"], found[name],
        agreement=f"within {off:.0e}", repeats=3, target=target,
        products=found[f"{name}_products"], limit=limit,
        memory=memory(__name__, f"{name}_reference", name) if width != WIDE else None,
    )  # fmt: skip
