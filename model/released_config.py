"""The settings of the released format, and what they say about a network.

Names of the keys are the format's own. Options that this network has not are refused by name.
Those that change no number of a float32 forward are read and left: how much of the concept axis
the released package holds at once, what it stores and ranks by (weights or logits, which order
alike), the activation of an MLP that is not used, and where its own steering injects (steering
here measures its strength instead). No torch here.
"""

import json
from typing import Literal, Self

from pydantic import NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from model.config import BackboneConfig, BottleneckConfig, Config, LanguageModelConfig

RANKS = (16, 1024)
"""Ranks of the unknown head that the released package accepts."""


class FormatError(ValueError):
    """A network that the released format cannot hold, or settings this network cannot follow."""


# Options of which one value can be followed, and what any other would mean.
_ONLY = (
    ("use_rms_norm", True, "its norms are LayerNorms"),
    ("mlp_type", "swiglu", "its MLP has no gate"),
    ("use_bias", False, "its projections have biases"),
)
_ONLY_CONCEPTS = (
    ("use_attention_known", False, "its known concepts are found by attention"),
    ("use_attention_unknown", False, "its unknown concepts are found by attention"),
    ("use_unknown", True, "it has no unknown concepts"),
)


class ReleasedConfig(Config):
    """Every setting, by its name in the flat form. Those that may be left out have the released
    package's defaults."""

    interpretable: bool
    vocab_size: PositiveInt
    n_layers: PositiveInt
    n_head: PositiveInt
    n_embd: PositiveInt
    block_size: PositiveInt
    """Longest sequence, in tokens."""

    n_kv_heads: PositiveInt | None
    """None: as many as `n_head`."""

    diff_block_size: PositiveInt
    use_rms_norm: bool = True
    norm_eps: PositiveFloat = 1e-5
    norm_order: Literal["pre", "post"] = "post"
    use_qk_norm: bool = True
    use_rope: bool = True
    rope_base: PositiveFloat = 500_000.0
    rope_full_precision: bool = True
    mlp_type: str = "swiglu"
    activation: str = "gelu"
    mlp_ratio: PositiveInt = 4
    intermediate_size: PositiveInt | None = None
    """None: `mlp_ratio` × `n_embd`."""

    use_bias: bool = False
    clip_qkv: PositiveFloat | None = 10.0
    weight_sharing: bool = True

    n_concepts: PositiveInt | None = None
    n_unknown_concepts: PositiveInt | None = None
    max_concepts: PositiveInt = 16
    """Labels a token can carry in a training batch."""

    concept_dim: PositiveInt | None = None
    use_attention_known: bool = False
    use_attention_unknown: bool = False
    topk_known: PositiveInt | None = 32
    topk_known_features: PositiveInt | None = 32
    use_unknown: bool = True
    factorize_unknown: bool = True
    factorize_rank: PositiveInt = 256
    unknown_topk: PositiveInt | None = 128
    use_epsilon_correction: bool = True
    concept_block_size: PositiveInt = 4096
    """Concepts held at once; `block_size` in the nested form."""

    pad_multiple: PositiveInt = 16
    """Concept tables have spare rows up to a multiple of this."""

    topk_on_logits: bool = False
    store_unknown_weights: bool = False
    apply_topk_to_unknown: bool = True
    inject_layer: NonNegativeInt = 16
    inject_alpha: float = 1.0

    pad_token_id: NonNegativeInt
    bos_token_id: NonNegativeInt
    eos_token_id: NonNegativeInt
    endofchunk_token_id: NonNegativeInt
    mask_token_id: NonNegativeInt

    instruct: bool = False
    """Whether the vocabulary has the three chat tokens below."""

    start_header_id: NonNegativeInt | None = None
    end_header_id: NonNegativeInt | None = None
    eot_id: NonNegativeInt | None = None

    @model_validator(mode="after")
    def _can_be_followed(self) -> Self:
        for key, value, why in _ONLY + (_ONLY_CONCEPTS if self.interpretable else ()):
            found = getattr(self, key)
            if found != value:
                raise ValueError(
                    f"{key} is {json.dumps(found)}: {why}, and this network can only follow "
                    f"{json.dumps(value)}; open this checkpoint with the package that wrote it"
                )
        return self

    @model_validator(mode="after")
    def _concepts_fit(self) -> Self:
        if not self.interpretable:
            return self
        for key in ("n_concepts", "n_unknown_concepts", "concept_dim"):
            if getattr(self, key) is None:
                raise ValueError(f"interpretable is true but {key} is missing; add it")
        if self.concept_dim != self.n_embd:
            raise ValueError(
                f"concept_dim is {self.concept_dim} and n_embd {self.n_embd}: concepts are added "
                f"to hidden states, so they must be equal"
            )
        return self

    @model_validator(mode="after")
    def _chat_tokens_follow_the_mask(self) -> Self:
        given = (self.start_header_id, self.end_header_id, self.eot_id)
        follow = _chat_ids(self.mask_token_id)
        if given not in ((None, None, None), follow):
            raise ValueError(
                f"start_header_id, end_header_id, eot_id are {given}; the three chat tokens "
                f"must follow the mask: {follow}"
            )
        if (self.instruct or given == follow) and self.vocab_size <= follow[-1]:
            raise ValueError(
                f"vocab_size is {self.vocab_size}, without room for the three chat tokens after "
                f"the mask {self.mask_token_id}; it must be {follow[-1] + 1} or more"
            )
        return self

    @classmethod
    def of(cls, config: LanguageModelConfig) -> "ReleasedConfig":
        """The settings of a network. FormatError names what the format cannot hold."""
        _refuse(config)
        backbone, bottleneck = config.backbone, config.bottleneck
        settings: dict[str, object] = {
            "interpretable": bottleneck is not None,
            "vocab_size": backbone.vocab_size,
            "n_layers": backbone.n_layers,
            "n_head": backbone.n_heads,
            "n_embd": backbone.width,
            "block_size": backbone.max_length,
            "n_kv_heads": backbone.n_kv_heads,
            "diff_block_size": backbone.block,
            "norm_eps": backbone.norm_eps,
            "norm_order": backbone.norm_order,
            "use_qk_norm": backbone.qk_norm,
            "use_rope": backbone.rotary,
            "rope_base": backbone.rope_base,
            "intermediate_size": backbone.mlp_width,
            "clip_qkv": backbone.clip_qkv,
            "weight_sharing": backbone.tied,
            "pad_token_id": config.pad_id,
            "bos_token_id": config.bos_id,
            "eos_token_id": config.eos_id,
            "endofchunk_token_id": config.end_of_chunk_id,
            "mask_token_id": config.mask_id,
        }
        if bottleneck is not None:
            settings |= {
                "n_concepts": bottleneck.n_known,
                "n_unknown_concepts": bottleneck.n_unknown,
                "concept_dim": backbone.width,
                "topk_known": bottleneck.top_k,
                "topk_known_features": bottleneck.top_k,
                "factorize_unknown": bottleneck.rank is not None,
                "unknown_topk": bottleneck.top_k_unknown,
                "use_epsilon_correction": bottleneck.residual,
                "inject_layer": backbone.n_layers // 2,
            }
            if bottleneck.rank is not None:
                settings["factorize_rank"] = bottleneck.rank
        chat_ids = _chat_ids(config.mask_id)
        if backbone.vocab_size > chat_ids[-1]:
            names = ("start_header_id", "end_header_id", "eot_id")
            settings |= {"instruct": True, **dict(zip(names, chat_ids, strict=True))}
        return cls.model_validate(settings)

    def language_model(self) -> LanguageModelConfig:
        """The same network in this package's words."""
        return LanguageModelConfig(
            backbone=BackboneConfig(
                vocab_size=self.vocab_size,
                width=self.n_embd,
                n_layers=self.n_layers,
                n_heads=self.n_head,
                n_kv_heads=self.n_kv_heads or self.n_head,
                mlp_width=self.intermediate_size or self.mlp_ratio * self.n_embd,
                max_length=self.block_size,
                block=self.diff_block_size,
                norm_order=self.norm_order,
                norm_eps=self.norm_eps,
                qk_norm=self.use_qk_norm,
                rotary=self.use_rope,
                rope_base=self.rope_base,
                clip_qkv=self.clip_qkv,
                tied=self.weight_sharing,
            ),
            bottleneck=self._bottleneck() if self.interpretable else None,
            bos_id=self.bos_token_id,
            eos_id=self.eos_token_id,
            pad_id=self.pad_token_id,
            mask_id=self.mask_token_id,
            end_of_chunk_id=self.endofchunk_token_id,
        )

    def _bottleneck(self) -> BottleneckConfig:
        """`topk_known` alone decides whether known concepts are cut, `topk_known_features` to how
        many: the released loss looked at `topk_known` of them. No cut is a cut to all."""
        n_known, n_unknown = self.n_concepts, self.n_unknown_concepts
        assert n_known is not None
        assert n_unknown is not None
        kept = None if self.topk_known is None else self.topk_known_features or self.topk_known
        kept_unknown = self.unknown_topk if self.apply_topk_to_unknown else None
        return BottleneckConfig(
            n_known=n_known,
            n_unknown=n_unknown,
            rank=self.factorize_rank if self.factorize_unknown else None,
            top_k=min(kept or n_known, n_known),
            top_k_unknown=min(kept_unknown or n_unknown, n_unknown),
            known_bias=False,
            residual=self.use_epsilon_correction,
        )


def _refuse(config: LanguageModelConfig) -> None:
    """Name what the format has no key or no tensor for."""
    faults = []
    if config.backbone.attention != "block_causal":
        faults.append(
            f"attention is {config.backbone.attention} (family {config.family}): the format has "
            f"block-causal attention alone, so save a network of the family cdlm or cdlm_concept"
        )
    bottleneck = config.bottleneck
    if bottleneck is not None and bottleneck.known_bias:
        faults.append(
            "known_bias is true: the format has no bias per concept, and leaving it out would "
            "change every activation, so train with known_bias false"
        )
    if bottleneck is not None and bottleneck.rank is not None:
        lowest, highest = RANKS
        if not lowest <= bottleneck.rank <= highest:
            faults.append(
                f"rank is {bottleneck.rank}: the released package takes {lowest} to {highest}, so "
                f"train with a rank in that range, or with none for a dense unknown head"
            )
    if faults:
        raise FormatError(
            f"the released format cannot hold this network: {'; '.join(faults)}. "
            f"model.checkpoint holds any network"
        )


def _chat_ids(mask_id: int) -> tuple[int, int, int]:
    return mask_id + 1, mask_id + 2, mask_id + 3
