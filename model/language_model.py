"""The whole network: embedding, backbone, concept bottleneck, tied head (paper §5).

    ids  ->  embedding  ->  backbone  ->  hidden  ->  (bottleneck)  ->  unembed  ->  logits

While the residual is kept, the recomposed state *is* the hidden state, so `logits` needs no
concept head; the bottleneck is asked for when parts are explained, forced, dropped or changed.
A network without a residual is the exception: its concepts must carry everything, always.

Shape suffixes used in this file:
    B batch   T position   D width   V vocabulary
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.bottleneck import ConceptBottleneck
from model.config import LanguageModelConfig
from model.transformer import NO_PAST, Injection, Past, Transformer

DEVIATION = 0.02
"""Standard deviation of every matrix at the start (branch outputs: / √(2 layers))."""


class LanguageModel(nn.Module):
    """One network of any of the four families. The same seed starts the same weights.

    Made on the device `meta` it has shapes and no weights; `model.starting` knows them.
    """

    def __init__(self, config: LanguageModelConfig, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        width = config.backbone.width
        self.embedding = nn.Embedding(config.backbone.vocab_size, width)
        self.backbone = Transformer(config.backbone)
        self.bottleneck = (
            None if config.bottleneck is None else ConceptBottleneck(config.bottleneck, width)
        )
        tied = config.backbone.tied
        self.head = None if tied else nn.Linear(width, config.backbone.vocab_size, bias=False)
        if not self.embedding.weight.is_meta:
            generator = torch.Generator().manual_seed(seed)
            for name, parameter in self.named_parameters():
                start_values(name, parameter, config, generator)

    def forward(self, ids_BT: Tensor, past: Past = NO_PAST) -> Tensor:
        """Logits (B, T, V); with `past`, of the tokens that follow it."""
        return self.logits(self.hidden(ids_BT, past))

    def hidden(
        self,
        ids_BT: Tensor,
        past: Past = NO_PAST,
        injection: Injection | None = None,
        documents_BP: Tensor | None = None,
    ) -> Tensor:
        """Hidden states (B, T, D) after the final norm. `ids` stand after the past's positions."""
        embedded_BTD = self.embedding(ids_BT)
        hidden_BTD, _ = self.backbone(embedded_BTD, past, injection, documents_BP)
        assert isinstance(hidden_BTD, Tensor)
        return hidden_BTD

    def extend(self, past: Past, ids_BT: Tensor, injection: Injection | None = None) -> Past:
        """`past` with finished tokens appended: whole blocks where attention is block-causal."""
        _, longer = self.backbone(self.embedding(ids_BT), past, injection)
        assert isinstance(longer, Past)
        return longer

    def unembed(self, state_D: Tensor) -> Tensor:
        """Logits (…, V) of any states: linear, so logits of parts add up."""
        weight_VD = self.head_VD
        return F.linear(state_D.to(weight_VD.dtype), weight_VD)

    @property
    def head_VD(self) -> Tensor:
        """The rows that name tokens: the embedding's, where the head is tied to it."""
        return self.embedding.weight if self.head is None else self.head.weight

    def composed(self, hidden_D: Tensor) -> Tensor:
        """The states (…, D) the head reads: h itself, or k̂ + û in a network without a residual."""
        if self.bottleneck is None or self.bottleneck.config.residual:
            return hidden_D
        # Not through the bottleneck's own forward: what explains a logit needs its whole gradient.
        known, unknown = self.bottleneck.known, self.bottleneck.unknown
        return known.combine(known.top(hidden_D)) + unknown.combine(unknown.top(hidden_D))

    def logits(self, hidden_D: Tensor) -> Tensor:
        """Logits (…, V) of hidden states."""
        return self.unembed(self.composed(hidden_D))

    @property
    def concepts(self) -> ConceptBottleneck:
        """The bottleneck, for callers that need one."""
        if self.bottleneck is None:
            raise ValueError(
                f"a network of the family {self.config.family} has no concepts; "
                f"use one of the families ar_concept or cdlm_concept"
            )
        return self.bottleneck


@torch.no_grad()
def start_values(
    name: str, values: Tensor, config: LanguageModelConfig, generator: torch.Generator
) -> None:
    """Fill a parameter with what it starts at.

    N(0, 0.02), smaller where a branch ends, so that depth does not grow the stream; biases 0 and
    the gains of norms 1.
    """
    if values.ndim == 2:
        shrink = 1 / math.sqrt(2 * config.backbone.n_layers)
        deviation = DEVIATION * (shrink if name.endswith("c_proj.weight") else 1.0)
        values.normal_(0.0, deviation, generator=generator)
    else:
        values.fill_(0.0 if name.endswith("bias_K") else 1.0)
