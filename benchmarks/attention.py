"""Block-causal attention by tiles of blocks against one product under a dense mask."""

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.measure import Contest, race
from model.attention import KeysValues, attend
from model.positions import Sight, masks

N_SEQUENCES, N_HEADS, N_GROUPS, WIDTH = 2, 8, 2, 64


def contest(length: int = 1_024, block: int = 64) -> Contest:
    """Forward and backward of one layer's attention, float32."""
    draw = torch.Generator().manual_seed(0)
    query = torch.randn(N_SEQUENCES, N_HEADS, length, WIDTH, generator=draw).requires_grad_()
    keys, values = (
        torch.randn(N_SEQUENCES, N_GROUPS, length, WIDTH, generator=draw).requires_grad_()
        for _ in range(2)
    )
    seen = masks(Sight(block, 0, length, None), torch.device("cpu"))
    at = torch.arange(length) // block
    mask = at[:, None] >= at

    def ours() -> Tensor:
        return _gradient(attend(query, KeysValues(keys, values), seen), query)

    def reference() -> Tensor:
        mixed = functional.scaled_dot_product_attention(
            query, keys, values, attn_mask=mask, enable_gqa=True
        )
        return _gradient(mixed, query)

    off = float((ours() - reference()).abs().max())
    return race(
        f"attention of {length:,} tokens", reference, ours,
        agreement=f"gradients within {off:.0e}", repeats=3,
    )  # fmt: skip


def _gradient(mixed: Tensor, query: Tensor) -> Tensor:
    (gradient,) = torch.autograd.grad(mixed.square().sum(), query, retain_graph=False)
    return gradient
