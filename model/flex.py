"""Block-causal attention as FlexAttention, torch's kernel for masks that are a rule (paper §5.2).

Only GPUs come here: on a CPU it has no gradient, and importing it brings torch's whole compiler.

Shape suffixes used in this file:
    B batch   T position (queries)   P position (keys, the past included)
    H query head   G key-value head   C head channel
"""

from collections.abc import Callable
from functools import cache
from typing import cast

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from model.positions import Sight

_Product = Callable[..., Tensor]
"""FlexAttention by keyword; torch gives it no type that survives compilation."""


def blocks(sight: Sight, device: torch.device) -> BlockMask:
    """Who may see whom, as tiles of 128 × 128."""
    documents_BP, width, n_past = sight.documents_BP, sight.block or 1, sight.n_past
    n_keys = n_past + sight.n_now

    def sees(row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (query + n_past) // width >= key // width

    if documents_BP is None:
        return create_block_mask(sees, None, None, sight.n_now, n_keys, str(device))

    def sees_its_document(row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        same = documents_BP[row, query + n_past] == documents_BP[row, key]
        return sees(row, head, query, key) & same

    n_sequences = len(documents_BP)
    return create_block_mask(sees_its_document, n_sequences, None, sight.n_now, n_keys, str(device))


def product(query_BHTC: Tensor, keys_BGPC: Tensor, values_BGPC: Tensor, mask: BlockMask) -> Tensor:
    """Softmax attention under the mask; query heads share the keys and values of their group."""
    attend = _compiled() if query_BHTC.is_cuda else cast(_Product, flex_attention)
    grouped = keys_BGPC.shape[1] < query_BHTC.shape[1]
    return attend(query_BHTC, keys_BGPC, values_BGPC, block_mask=mask, enable_gqa=grouped)


@cache
def _compiled() -> _Product:
    """Uncompiled, FlexAttention builds every pair; compiled, only the tiles that are seen."""
    return cast(_Product, torch.compile(flex_attention))
