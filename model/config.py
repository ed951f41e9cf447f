"""Configs of the network and its training: frozen, strict, and the wire format between processes.

    NetworkConfig        what a recipe decides about a network; the data decide the rest
    LanguageModelConfig  everything that fixes a network's tensors; saved beside its weights

What fixes an optimisation stands in `model.train_config`.

Sizes and names follow the paper's 8B network (§5, appendices G and K). No torch here.
"""

from typing import ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from model.tokenizer import SpecialIds


class Config(BaseModel):
    """Base of every config. Unknown keys are errors; `model_dump_json` is the wire format."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    HOW: ClassVar[tuple[str, ...]] = ()
    """Dotted names of fields that say how a thing is computed and not what comes out: a killed
    attempt can be gone on with after they have changed."""


Family = Literal["ar", "cdlm", "ar_concept", "cdlm_concept"]
"""The four families of the scaling study: mask and objective, with or without concepts."""


class BackboneConfig(Config):
    """The transformer between the embedding and the final norm (paper §5.2)."""

    vocab_size: PositiveInt
    width: PositiveInt
    n_layers: PositiveInt
    n_heads: PositiveInt

    n_kv_heads: PositiveInt
    """Heads of keys and values; each serves `n_heads / n_kv_heads` query heads."""

    mlp_width: PositiveInt

    max_length: PositiveInt
    """Longest sequence, in tokens."""

    block: PositiveInt
    """Tokens of a diffusion block: attention is bidirectional inside, causal between blocks."""

    attention: Literal["block_causal", "causal"] = "block_causal"

    norm_order: Literal["post", "pre"] = "post"
    """`post` normalises what a branch adds, `pre` what it reads. The release uses `post`."""

    norm_eps: PositiveFloat = 1e-5
    rope_base: PositiveFloat = 500_000.0

    qk_norm: bool = True
    """Queries and keys are normalised over the channels of a head before they are turned."""

    rotary: bool = True
    """Rotary positions, the only ones there are: without them a token knows its block alone."""

    clip_qkv: PositiveFloat | None = 10.0
    """Queries, keys and values are cut to ± this before anything else. None: they are not."""

    tied: bool = True
    """Whether the head that names tokens is the embedding, as released, or a matrix of its own."""

    @property
    def head_width(self) -> int:
        return self.width // self.n_heads

    @model_validator(mode="after")
    def _heads_fit(self) -> Self:
        if self.width % self.n_heads or self.head_width % 2:
            raise ValueError(
                f"n_heads is {self.n_heads}: width {self.width} divided by it must be an even "
                f"whole number (rotary positions turn pairs); try {max(1, self.width // 64)}"
            )
        if self.n_heads % self.n_kv_heads:
            raise ValueError(
                f"n_kv_heads is {self.n_kv_heads}, which does not divide n_heads {self.n_heads}; "
                f"try 1 or {self.n_heads}"
            )
        return self


class BottleneckConfig(Config):
    """The concept bottleneck (paper §5.3)."""

    n_known: PositiveInt
    """Concepts Atlas labels. Fixes the width of the supervised head."""

    n_unknown: PositiveInt
    """Unsupervised concepts that soak up what the known ones miss. The paper uses 3 × known."""

    rank: PositiveInt | None
    """Rank of the unknown predictor and of the unknown embeddings. The paper uses 256 at 8B. None:
    both are full matrices (ablation J.4)."""

    top_k: PositiveInt = 32
    """Known concepts kept per token outside training. The paper uses 32 at every scale."""

    top_k_unknown: PositiveInt = 128
    """Unknown concepts kept per token outside training."""

    known_bias: bool = True
    """A bias per known concept, started at logit(prevalence / tokens per chunk). The release has
    none: its concepts start near 0.5 and the OR over a chunk starts saturated."""

    residual: bool = True
    """Whether what the concepts miss stays in the state; without it they must carry all of it
    (ablation J.5)."""

    @model_validator(mode="after")
    def _top_k_fits(self) -> Self:
        for name, kept, present in (
            ("top_k", self.top_k, self.n_known),
            ("top_k_unknown", self.top_k_unknown, self.n_unknown),
        ):
            if kept > present:
                raise ValueError(
                    f"{name} is {kept} but there are only {present} such concepts; lower {name} "
                    f"or have more concepts"
                )
        return self


class LanguageModelConfig(Config):
    """Everything that fixes the tensors of a network."""

    backbone: BackboneConfig

    bottleneck: BottleneckConfig | None
    """None for the two families without concepts."""

    bos_id: NonNegativeInt
    eos_id: NonNegativeInt
    pad_id: NonNegativeInt
    mask_id: NonNegativeInt
    end_of_chunk_id: NonNegativeInt

    @property
    def family(self) -> Family:
        if self.backbone.attention == "causal":
            return "ar" if self.bottleneck is None else "ar_concept"
        return "cdlm" if self.bottleneck is None else "cdlm_concept"

    @model_validator(mode="after")
    def _specials_fit(self) -> Self:
        ids = (self.bos_id, self.eos_id, self.pad_id, self.mask_id, self.end_of_chunk_id)
        if max(ids) >= self.backbone.vocab_size or len(set(ids)) < len(ids):
            raise ValueError(
                f"special token ids {ids} must differ and lie below vocab_size "
                f"{self.backbone.vocab_size}; take them from the tokenizer that wrote the tokens"
            )
        return self


class NetworkConfig(Config):
    """What a recipe decides about a network. Vocabulary and library come with the data."""

    family: Family = "cdlm_concept"
    width: PositiveInt
    n_layers: PositiveInt
    n_heads: PositiveInt
    n_kv_heads: PositiveInt
    mlp_width: PositiveInt
    max_length: PositiveInt
    block: PositiveInt
    norm_order: Literal["post", "pre"] = "post"
    qk_norm: bool = True
    rotary: bool = True
    clip_qkv: PositiveFloat | None = 10.0
    tied: bool = True
    rank: PositiveInt | None = 32
    unknown_per_known: PositiveInt = 3
    top_k: PositiveInt = 32
    top_k_unknown: PositiveInt = 128
    known_bias: bool = True
    residual: bool = True

    def language_model(
        self, *, vocab_size: int, n_known: int, specials: SpecialIds
    ) -> LanguageModelConfig:
        """The full config, once the data are known. A small library lowers the top-k to fit."""
        attention: Literal["block_causal", "causal"] = (
            "block_causal" if self.family.startswith("cdlm") else "causal"
        )
        shared = BackboneConfig.model_fields.keys() & NetworkConfig.model_fields.keys()
        backbone = BackboneConfig.model_validate(
            {name: getattr(self, name) for name in shared}
            | {"vocab_size": vocab_size, "attention": attention}
        )
        bottleneck = None
        if self.family.endswith("concept"):
            n_unknown = self.unknown_per_known * n_known
            bottleneck = BottleneckConfig(
                n_known=n_known,
                n_unknown=n_unknown,
                rank=self.rank,
                top_k=min(self.top_k, n_known),
                top_k_unknown=min(self.top_k_unknown, n_unknown),
                known_bias=self.known_bias,
                residual=self.residual,
            )
        return LanguageModelConfig(
            backbone=backbone,
            bottleneck=bottleneck,
            bos_id=specials.bos_id,
            eos_id=specials.eos_id,
            pad_id=specials.pad_id,
            mask_id=specials.mask_id,
            end_of_chunk_id=specials.end_of_chunk_id,
        )
