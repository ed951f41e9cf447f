"""Attention: block-causal or causal, grouped queries, normalised, rotated (paper §5.2, fig. 16).

    qkv = clip(x W)  ->  norm(q), norm(k)  ->  rotate  ->  softmax(q kᵀ / √C, sight) v  ->  W_out

On a GPU the masked product is FlexAttention's; on a CPU, where that has no gradient, it goes tile
by tile over the keys a tile can see, which is exact and leaves most masked pairs uncomputed.

Shape suffixes used in this file:
    B batch   T position (queries)   P position (keys, the past included)   D width
    N position read off   H query head   G key-value head
    C head channel (of cos and sin: channel pair)
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import BackboneConfig
from model.positions import Masks, Positions, Tile


@dataclass(frozen=True)
class KeysValues:
    """What one layer remembers of positions before the current ones."""

    keys_BGPC: Tensor
    values_BGPC: Tensor


def rotate(states_BHTC: Tensor, at: Positions) -> Tensor:
    """Turn channel pairs (c, c + C/2) by an angle that grows with the position."""
    first, second = states_BHTC.float().chunk(2, dim=-1)
    return torch.cat(
        [first * at.cos_TC - second * at.sin_TC, second * at.cos_TC + first * at.sin_TC], dim=-1
    )


class RMSNorm(nn.Module):
    """x / rms(x) · weight, computed in float32 and returned in the dtype that came in."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, states_D: Tensor) -> Tensor:
        wide_D = states_D.float()
        scale = torch.rsqrt(wide_D.square().mean(-1, keepdim=True) + self.eps)
        return (wide_D * scale * self.weight.float()).to(states_D.dtype)


class Attention(nn.Module):
    """Grouped-query attention with one fused input projection, laid out q | k | v."""

    def __init__(self, config: BackboneConfig) -> None:
        super().__init__()
        self.config = config
        self.width_kv = config.n_kv_heads * config.head_width
        self.c_attn = nn.Linear(config.width, config.width + 2 * self.width_kv, bias=False)
        self.c_proj = nn.Linear(config.width, config.width, bias=False)
        self.q_norm = RMSNorm(config.head_width, config.norm_eps) if config.qk_norm else None
        self.k_norm = RMSNorm(config.head_width, config.norm_eps) if config.qk_norm else None

    def forward(
        self, states_BTD: Tensor, at: Positions, past: KeysValues | None
    ) -> tuple[Tensor, KeysValues]:
        """What attention adds, and the keys and values of all positions so far."""
        fused = self._clipped(self.c_attn(states_BTD))
        widths = [self.config.width, self.width_kv, self.width_kv]
        query, key, value = torch.split(fused, widths, dim=-1)
        values_BGTC = self._heads(value)
        query_BHTC = self._placed(self._heads(query), self.q_norm, at).to(values_BGTC.dtype)
        keys_BGTC = self._placed(self._heads(key), self.k_norm, at).to(values_BGTC.dtype)
        seen = _joined(past, KeysValues(keys_BGTC, values_BGTC))
        mixed_BHTC = attend(query_BHTC, seen, at.masks)
        return self.c_proj(mixed_BHTC.transpose(1, 2).flatten(2)), seen

    def read(
        self, states_BTD: Tensor, at: Positions, readout_BN: Tensor, past: KeysValues | None
    ) -> Tensor:
        """What attention adds (B, N, D) at some positions that see all of the sequence."""
        weight, width = self.c_attn.weight, self.config.width
        asked_BND = states_BTD[torch.arange(len(readout_BN))[:, None], readout_BN]
        query = self._clipped(F.linear(asked_BND, weight[:width]))
        key, value = self._clipped(F.linear(states_BTD, weight[width:])).chunk(2, dim=-1)
        values_BGTC = self._heads(value)
        there = Positions(at.cos_TC[readout_BN][:, None], at.sin_TC[readout_BN][:, None], Masks())
        query_BHNC = self._placed(self._heads(query), self.q_norm, there).to(values_BGTC.dtype)
        keys_BGTC = self._placed(self._heads(key), self.k_norm, at).to(values_BGTC.dtype)
        seen = _joined(past, KeysValues(keys_BGTC, values_BGTC))
        mixed_BHNC = _masked_product(query_BHNC, seen, mask=None)
        added_BND: Tensor = self.c_proj(mixed_BHNC.transpose(1, 2).flatten(2))
        return added_BND

    def _clipped(self, fused: Tensor) -> Tensor:
        limit = self.config.clip_qkv
        return fused if limit is None else fused.clamp(-limit, limit)

    def _heads(self, states_BTD: Tensor) -> Tensor:
        n_sequences, length, _ = states_BTD.shape
        heads = states_BTD.view(n_sequences, length, -1, self.config.head_width)
        return heads.transpose(1, 2)

    def _placed(self, states_BHTC: Tensor, norm: RMSNorm | None, at: Positions) -> Tensor:
        normed_BHTC = states_BHTC if norm is None else norm(states_BHTC)
        return rotate(normed_BHTC, at) if self.config.rotary else normed_BHTC


def attend(query_BHTC: Tensor, seen: KeysValues, masks: Masks) -> Tensor:
    """Softmax attention; query heads share the keys and values of their group."""
    if masks.blocks is not None:
        from model import flex  # there is a GPU, or nobody would have made blocks

        return flex.product(query_BHTC, seen.keys_BGPC, seen.values_BGPC, masks.blocks)
    if masks.tiles:
        return _by_tiles(query_BHTC, seen, masks.tiles)
    return _product(query_BHTC, seen, mask=None, is_causal=True)


def _by_tiles(query_BHTC: Tensor, seen: KeysValues, tiles: tuple[Tile, ...]) -> Tensor:
    """Tiles of whole blocks, each against the keys it can see."""
    # torch's own product is slow for bfloat16 on a CPU: three plain ones take half its time.
    low = query_BHTC.dtype == torch.bfloat16 and query_BHTC.is_cpu
    product = _three_products if low else _masked_product
    mixed = []
    for tile in tiles:
        visible = KeysValues(
            seen.keys_BGPC[:, :, : tile.n_keys], seen.values_BGPC[:, :, : tile.n_keys]
        )
        mixed.append(product(query_BHTC[:, :, tile.start : tile.end], visible, tile.mask))
    return mixed[0] if len(mixed) == 1 else torch.cat(mixed, dim=2)


def _masked_product(query_BHTC: Tensor, seen: KeysValues, mask: Tensor | None) -> Tensor:
    return _product(query_BHTC, seen, mask=mask, is_causal=False)


def _product(
    query_BHTC: Tensor, seen: KeysValues, *, mask: Tensor | None, is_causal: bool
) -> Tensor:
    return F.scaled_dot_product_attention(
        query_BHTC,
        seen.keys_BGPC,
        seen.values_BGPC,
        attn_mask=mask,
        is_causal=is_causal,
        enable_gqa=seen.keys_BGPC.shape[1] < query_BHTC.shape[1],
    )


def _three_products(query_BHTC: Tensor, seen: KeysValues, mask: Tensor | None) -> Tensor:
    n_sequences, n_heads, length, width = query_BHTC.shape
    n_groups, n_seen = seen.keys_BGPC.shape[1:3]
    grouped = (query_BHTC * width**-0.5).reshape(n_sequences, n_groups, -1, width)
    scores = grouped @ seen.keys_BGPC.transpose(-1, -2)
    if mask is not None:
        by_head = scores.view(n_sequences, n_heads, length, n_seen)
        hidden = torch.zeros_like(mask, dtype=scores.dtype).masked_fill(~mask, -torch.inf)
        scores = (by_head + hidden).view_as(scores)
    return (scores.softmax(dim=-1) @ seen.values_BGPC).view(n_sequences, n_heads, length, width)


def _joined(past: KeysValues | None, now: KeysValues) -> KeysValues:
    if past is None:
        return now
    return KeysValues(
        torch.cat([past.keys_BGPC, now.keys_BGPC], dim=2),
        torch.cat([past.values_BGPC, now.values_BGPC], dim=2),
    )
