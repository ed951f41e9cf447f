"""Where tokens stand and whom they may see: rotary tables and masks (paper §5.2, fig. 16).

    block-causal   query position q sees key position p  where  ⌊q / block⌋ ≥ ⌊p / block⌋
    causal         where  q ≥ p
    documents      and, if documents are kept apart, where both lie in the same one

All of it follows from the positions, so it is made once for a shape, before the first layer, and
shared by layers and steps; compiled layers take it as they find it.

Shape suffixes used in this file:
    B batch   T position (queries)   P position (keys, the past included)   C channel pair of a head
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from model.config import BackboneConfig

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

REMEMBERED = 64
"""Shapes whose tables are kept. Training has one; generation one for each block of an answer."""

TILE = 128
"""Queries answered at a time on a CPU: fewer waste calls, more compute what the mask throws away.
Of 64, 128 and 256 the fastest or within 3 % of it at 256, 1,024 and 4,096 tokens."""


@dataclass(frozen=True)
class Tile:
    """Queries start … end−1, the keys any of them may see, and which of those each may see."""

    start: int
    end: int
    n_keys: int
    mask: Tensor | None
    """bool (t, p), or (B, 1, t, p) with documents. None: all of them."""


@dataclass(frozen=True)
class Sight:
    """Who may see whom, for `n_now` queries after `n_past` positions."""

    block: int | None
    """None: plain causal attention."""

    n_past: int
    n_now: int
    documents_BP: Tensor | None
    """int64: which document each position lies in; None where they may see each other."""

    @property
    def is_plain_causal(self) -> bool:
        return self.block is None and self.n_past == 0 and self.documents_BP is None

    @property
    def tile(self) -> int:
        """Queries of a tile: whole blocks, about `TILE` of them."""
        block = self.block or 1
        return block * max(1, TILE // block)

    def seen_by(self, start: int, end: int) -> int:
        """Keys that any of the queries start … end−1 may see: the first so many."""
        last = self.n_past + end
        if self.block is None:
            return last
        return min(-(-last // self.block) * self.block, self.n_past + self.n_now)

    def tiles(self, device: torch.device) -> tuple[Tile, ...]:
        """All queries, `tile` at a time."""
        starts = range(0, self.n_now, self.tile)
        return tuple(self.between(at, min(at + self.tile, self.n_now), device) for at in starts)

    def between(self, start: int, end: int, device: torch.device) -> Tile:
        """One tile of them."""
        n_keys = self.seen_by(start, end)
        return Tile(start, end, n_keys, self._mask(start, end, n_keys, device))

    def _mask(self, start: int, end: int, n_keys: int, device: torch.device) -> Tensor | None:
        allowed_TP = _allowed(self.block, self.n_past + start, self.n_past + end, n_keys, device)
        if self.documents_BP is None:
            return allowed_TP
        now_BT = self.documents_BP[:, self.n_past + start : self.n_past + end]
        same_BTP = now_BT[:, :, None] == self.documents_BP[:, None, :n_keys]
        return (same_BTP if allowed_TP is None else same_BTP & allowed_TP)[:, None]


@dataclass(frozen=True)
class Masks:
    """Sight in the form that a device's product wants; neither where attention is plain causal."""

    tiles: tuple[Tile, ...] = ()
    blocks: "BlockMask | None" = None


def masks(sight: Sight, device: torch.device) -> Masks:
    """What `attend` needs to know on that device."""
    if sight.is_plain_causal:
        return Masks()
    if sight.documents_BP is None:
        return _masks_of_shape(sight.block, sight.n_past, sight.n_now, device)
    return _masks(sight, device)


@dataclass(frozen=True)
class Positions:
    """What every layer needs to know about where its tokens stand."""

    cos_TC: Tensor
    sin_TC: Tensor
    masks: Masks


def positions(
    config: BackboneConfig,
    n_past: int,
    n_now: int,
    device: torch.device,
    documents_BP: Tensor | None = None,
) -> Positions:
    """Rotary tables, in float32, and masks of positions n_past … n_past + n_now − 1."""
    cos_TC, sin_TC = _turns(config.head_width, config.rope_base, n_past, n_now, device)
    block = config.block if config.attention == "block_causal" else None
    sight = Sight(block, n_past, n_now, documents_BP)
    return Positions(cos_TC, sin_TC, masks(sight, device))


def documents(ids_BT: Tensor, bos_id: int) -> Tensor:
    """Which document each token lies in (B, T): every BOS, which noise never hides, opens one."""
    return (ids_BT == bos_id).cumsum(dim=1)


@lru_cache(maxsize=REMEMBERED)
def _turns(
    head_width: int, base: float, n_past: int, n_now: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    with torch.inference_mode(mode=False):  # or a table first made there could never be trained on
        now_T = torch.arange(n_past, n_past + n_now, device=device)
        half_C = torch.arange(0, head_width, 2, dtype=torch.float32, device=device)
        turns_TC = now_T.float()[:, None] * base ** (-half_C / head_width)
        return turns_TC.cos(), turns_TC.sin()


@lru_cache(maxsize=REMEMBERED)
def _masks_of_shape(block: int | None, n_past: int, n_now: int, device: torch.device) -> Masks:
    with torch.inference_mode(mode=False):
        return _masks(Sight(block, n_past, n_now, None), device)


def _masks(sight: Sight, device: torch.device) -> Masks:
    if device.type != "cuda":
        return Masks(tiles=sight.tiles(device))
    from model import flex  # seconds of compiler, which a CPU never asks for

    return Masks(blocks=flex.blocks(sight, device))


def _allowed(
    block: int | None, first: int, last: int, n_keys: int, device: torch.device
) -> Tensor | None:
    now_T, seen_P = torch.arange(first, last, device=device), torch.arange(n_keys, device=device)
    allowed_TP = now_T[:, None] // (block or 1) >= seen_P // (block or 1)
    return None if bool(allowed_TP.all()) else allowed_TP
