"""The backbone: a stack of attention and SwiGLU branches over a residual stream (paper §5.2).

    post  x ← x + Norm(Attention(x));  x ← x + Norm(MLP(x))        (the released order)
    pre   x ← x + Attention(Norm(x));  x ← x + MLP(Norm(x))

No positional table, no noise-level input, no dropout. Returns the state after the final norm.

Shape suffixes used in this file:
    B batch   T position   N position read off   P position (of keys, the past included)
    D width   F MLP width
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from model.attention import Attention, KeysValues, RMSNorm
from model.config import BackboneConfig
from model.positions import Positions, positions


@dataclass(frozen=True)
class Past:
    """Keys and values of finished positions 0 … length − 1, one entry a layer.

    Valid because later blocks are invisible and finished blocks never change (paper §5.2).
    """

    layers: tuple[KeysValues, ...] = ()

    @property
    def length(self) -> int:
        return self.layers[0].keys_BGPC.shape[2] if self.layers else 0


NO_PAST = Past()


@dataclass(frozen=True)
class Injection:
    """What is added to the residual stream after which layers (eq. 18)."""

    by_layer: Mapping[int, Tensor]
    """(B, T, D) each. One tensor may stand at many layers."""

    @classmethod
    def from_layer(cls, first: int, n_layers: int, addition_BTD: Tensor) -> Self:
        """The same addition after this layer and all behind it."""
        return cls(dict.fromkeys(range(first, n_layers), addition_BTD))


class MLP(nn.Module):
    """SwiGLU with one fused input matrix, laid out up | gate."""

    def __init__(self, config: BackboneConfig) -> None:
        super().__init__()
        self.c_fc = nn.Linear(config.width, 2 * config.mlp_width, bias=False)
        self.c_proj = nn.Linear(config.mlp_width, config.width, bias=False)

    def forward(self, states_BTD: Tensor) -> Tensor:
        up_BTF, gate_BTF = self.c_fc(states_BTD).chunk(2, dim=-1)
        out_BTD: Tensor = self.c_proj(F.silu(gate_BTF) * up_BTF)
        return out_BTD


class Layer(nn.Module):
    """One attention branch and one MLP branch."""

    def __init__(self, config: BackboneConfig) -> None:
        super().__init__()
        self.post = config.norm_order == "post"
        self.attention = Attention(config)
        self.mlp = MLP(config)
        self.norm_1 = RMSNorm(config.width, config.norm_eps)
        self.norm_2 = RMSNorm(config.width, config.norm_eps)

    def forward(
        self, states_BTD: Tensor, at: Positions, past: KeysValues | None
    ) -> tuple[Tensor, KeysValues]:
        if self.post:
            mixed_BTD, seen = self.attention(states_BTD, at, past)
            states_BTD = states_BTD + self.norm_1(mixed_BTD)
            return states_BTD + self.norm_2(self.mlp(states_BTD)), seen
        mixed_BTD, seen = self.attention(self.norm_1(states_BTD), at, past)
        states_BTD = states_BTD + mixed_BTD
        return states_BTD + self.mlp(self.norm_2(states_BTD)), seen

    def read(
        self, states_BTD: Tensor, at: Positions, readout_BN: Tensor, past: KeysValues | None
    ) -> Tensor:
        """States (B, N, D) of some positions, which see all of the sequence, and of no others."""
        kept_BND = states_BTD[torch.arange(len(readout_BN))[:, None], readout_BN]
        if self.post:
            kept_BND = kept_BND + self.norm_1(self.attention.read(states_BTD, at, readout_BN, past))
            return kept_BND + self.norm_2(self.mlp(kept_BND))
        kept_BND = kept_BND + self.attention.read(self.norm_1(states_BTD), at, readout_BN, past)
        return kept_BND + self.mlp(self.norm_2(kept_BND))


class Transformer(nn.Module):
    """Embedded tokens in, hidden states out."""

    def __init__(self, config: BackboneConfig) -> None:
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.n_layers))
        self.norm = RMSNorm(config.width, config.norm_eps)
        self.recomputes = False
        """Whether gradients are made from layers computed again, not from kept activations."""

    def forward(
        self,
        embedded_BTD: Tensor,
        past: Past = NO_PAST,
        injection: Injection | None = None,
        documents_BP: Tensor | None = None,
    ) -> tuple[Tensor, Past]:
        """Hidden states after the final norm, and `past` with these positions appended.

        Tokens of one document do not see those of another if `documents_BP` says which is which.
        """
        n_now, device = embedded_BTD.shape[1], embedded_BTD.device
        self._check(past, n_now)
        at = positions(self.config, past.length, n_now, device, documents_BP)
        states_BTD = embedded_BTD
        layers = []
        for index, layer in enumerate(self.layers):
            before = past.layers[index] if past.layers else None
            states_BTD, seen = self._pass(layer, states_BTD, at, before)
            if injection is not None and index in injection.by_layer:
                states_BTD = states_BTD + injection.by_layer[index].to(states_BTD.dtype)
            layers.append(seen)
        return self.norm(states_BTD), Past(tuple(layers))

    def read(
        self,
        embedded_BTD: Tensor,
        readout_BN: Tensor,
        injection: Injection | None = None,
        past: Past = NO_PAST,
    ) -> Tensor:
        """Hidden states (B, N, D) of some positions of the last block: the last layer, which no
        other position needs, is asked for these alone. `readout` counts from the past's end."""
        length, by_layer = embedded_BTD.shape[1], {} if injection is None else injection.by_layer
        self._check(past, length)
        if int(readout_BN.min()) < self._last_block(length):
            raise ValueError(
                f"position {int(readout_BN.min())} of {length} does not see all of them; cut the "
                f"sequence behind the block it lies in"
            )
        at = positions(self.config, past.length, length, embedded_BTD.device)
        before = past.layers or (None,) * len(self.layers)
        states_BTD, last = embedded_BTD, len(self.layers) - 1
        for index, layer in enumerate(self.layers[:-1]):
            states_BTD, _ = layer(states_BTD, at, before[index])
            if index in by_layer:
                states_BTD = states_BTD + by_layer[index].to(states_BTD.dtype)
        reader = self.layers[last]
        assert isinstance(reader, Layer)
        read_BND = reader.read(states_BTD, at, readout_BN, before[last])
        if last in by_layer:
            added_BND = by_layer[last][torch.arange(len(readout_BN))[:, None], readout_BN]
            read_BND = read_BND + added_BND.to(read_BND.dtype)
        normed_BND: Tensor = self.norm(read_BND)
        return normed_BND

    def _last_block(self, length: int) -> int:
        """First of the positions that see all of a sequence."""
        block = 1 if self.config.attention == "causal" else self.config.block
        return (length - 1) // block * block

    def _pass(
        self, layer: nn.Module, states_BTD: Tensor, at: Positions, before: KeysValues | None
    ) -> tuple[Tensor, KeysValues]:
        if not (self.recomputes and torch.is_grad_enabled()):
            return layer(states_BTD, at, before)
        # A layer draws nothing, so it comes out the same without the generator's state.
        return checkpoint(
            layer, states_BTD, at, before, use_reentrant=False, preserve_rng_state=False
        )

    def _check(self, past: Past, n_now: int) -> None:
        config = self.config
        if past.length + n_now > config.max_length:
            raise ValueError(
                f"a sequence of {past.length + n_now} tokens is longer than max_length "
                f"{config.max_length}; cut it, or train a network with a larger max_length"
            )
        if config.attention == "block_causal" and past.length % config.block:
            raise ValueError(
                f"a past of {past.length} tokens ends inside a block of {config.block}: the rest "
                f"of that block would change it; keep whole blocks, {config.block} tokens each"
            )
