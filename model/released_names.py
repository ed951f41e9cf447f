"""Tensors of the released format by their names, and the parameters they are here.

Every matrix is stored as it is used here, but for two things: concept tables have spare rows up to
a multiple of `pad_multiple`, which are no concepts, and the basis of the unknown embeddings lies
on its side. A network without concepts has the names of the backbone without `transformer.`.

    transformer.tok_emb.weight                              embedding.weight
    transformer.lm_head.weight                              the same matrix, or head.weight
    transformer.blocks.{i}.{ln_1,ln_2}.weight               backbone.layers.{i}.norm_{1,2}.weight
    transformer.blocks.{i}.attn.{c_attn,c_proj,…}.weight    backbone.layers.{i}.attention.….weight
    transformer.blocks.{i}.mlp.{c_fc,c_proj}.weight         backbone.layers.{i}.mlp.….weight
    transformer.ln_f.weight                                 backbone.norm.weight
    {known,unknown}_head.concept_{predictor,embedding}.…    bottleneck.{known,unknown}.{…}_{K,U}D
    unknown_head.predictor_{down,up}.weight                 bottleneck.unknown.predictor_{R,U}{D,R}
    unknown_head.embedding_{coef,basis}.weight              bottleneck.unknown.embedding_{U,R}{R,D}

Shape suffixes used in this file:
    N rows   D width   R rank   K known concept   U unknown concept
"""

import math
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from model.config import LanguageModelConfig

EMBEDDING = "embedding.weight"
HEAD = "head.weight"


@dataclass(frozen=True)
class Stored:
    """How the format holds one parameter of ours."""

    names: tuple[str, ...]
    """The name it is written by, then others it is read by."""

    shape: tuple[int, ...]
    """As stored."""

    n_rows: int
    """Rows that mean something; the rest are spare."""

    on_its_side: bool = False

    @property
    def n_numbers(self) -> int:
        return math.prod(self.shape)

    def opened(self, found: Tensor) -> Tensor:
        """Our parameter from the stored tensor."""
        return found.T if self.on_its_side else found[: self.n_rows]

    def closed(self, parameter: Tensor) -> Tensor:
        """The stored tensor from our parameter; spare rows are zeros."""
        if self.on_its_side:
            return parameter.T.contiguous()
        spare = self.shape[0] - self.n_rows
        return F.pad(parameter, (0, 0, 0, spare)) if spare else parameter.contiguous()


def stored(
    config: LanguageModelConfig, *, pad_multiple: int, prefix: str = "transformer."
) -> dict[str, Stored]:
    """How the format holds each parameter of a network, by our names, in the format's order.

    `prefix` stands before the backbone's names. The head is there where it is a matrix of its own.
    """
    backbone = config.backbone
    table = (backbone.vocab_size, backbone.width)
    heads = (f"{prefix}lm_head.weight", "lm_head.weight")
    embedding = (f"{prefix}tok_emb.weight", *(heads if backbone.tied else ()))
    found = {EMBEDDING: Stored(tuple(dict.fromkeys(embedding)), table, table[0])}
    if not backbone.tied:
        found[HEAD] = Stored(tuple(dict.fromkeys(heads)), table, table[0])
    for layer in range(backbone.n_layers):
        found |= _layer(config, layer, prefix)
    found["backbone.norm.weight"] = _whole(f"{prefix}ln_f.weight", backbone.width)
    return found | _concepts(config, pad_multiple)


def _layer(config: LanguageModelConfig, layer: int, prefix: str) -> dict[str, Stored]:
    backbone = config.backbone
    width, head_width = backbone.width, backbone.head_width
    theirs, ours = f"{prefix}blocks.{layer}.", f"backbone.layers.{layer}."
    fused = width + 2 * backbone.n_kv_heads * head_width
    found = {
        f"{ours}norm_1.weight": _whole(f"{theirs}ln_1.weight", width),
        f"{ours}norm_2.weight": _whole(f"{theirs}ln_2.weight", width),
        f"{ours}attention.c_attn.weight": _whole(f"{theirs}attn.c_attn.weight", fused, width),
        f"{ours}attention.c_proj.weight": _whole(f"{theirs}attn.c_proj.weight", width, width),
    }
    if backbone.qk_norm:
        for name in ("q_norm", "k_norm"):
            found[f"{ours}attention.{name}.weight"] = _whole(
                f"{theirs}attn.{name}.weight", head_width
            )
    up, down = (2 * backbone.mlp_width, width), (width, backbone.mlp_width)
    found[f"{ours}mlp.c_fc.weight"] = _whole(f"{theirs}mlp.c_fc.weight", *up)
    found[f"{ours}mlp.c_proj.weight"] = _whole(f"{theirs}mlp.c_proj.weight", *down)
    return found


def _concepts(config: LanguageModelConfig, pad_multiple: int) -> dict[str, Stored]:
    bottleneck, width = config.bottleneck, config.backbone.width
    if bottleneck is None:
        return {}
    n_known, n_unknown, rank = bottleneck.n_known, bottleneck.n_unknown, bottleneck.rank

    def table(name: str, n_rows: int, n_columns: int) -> Stored:
        spare = -n_rows % pad_multiple
        return Stored((f"{name}.weight",), (n_rows + spare, n_columns), n_rows)

    known, unknown = "bottleneck.known.", "bottleneck.unknown."
    found = {
        f"{known}embedding_KD": table("known_head.concept_embedding", n_known, width),
        f"{known}predictor_KD": table("known_head.concept_predictor", n_known, width),
    }
    if rank is None:
        return found | {
            f"{unknown}embedding_UD": table("unknown_head.concept_embedding", n_unknown, width),
            f"{unknown}predictor_UD": table("unknown_head.concept_predictor", n_unknown, width),
        }
    basis = Stored(("unknown_head.embedding_basis.weight",), (width, rank), width, on_its_side=True)
    return found | {
        f"{unknown}embedding_UR": table("unknown_head.embedding_coef", n_unknown, rank),
        f"{unknown}embedding_RD": basis,
        f"{unknown}predictor_RD": _whole("unknown_head.predictor_down.weight", rank, width),
        f"{unknown}predictor_UR": table("unknown_head.predictor_up", n_unknown, rank),
    }


def _whole(name: str, *shape: int) -> Stored:
    return Stored((name,), shape, shape[0])
