"""What is asked and what is answered, as JSON: of `clearstory explain` and `steer`, of the server.

Frozen and strict. Positions count tokens of the whole sequence from 0, the prompt's first; spans
are half-open. A share is of the magnitude of a logit's parts, so shares of a token add up to 1; a
signed share keeps the direction. Names say their units; ranges are 95% intervals.

No torch here.
"""

from typing import Literal

from pydantic import NonNegativeInt, PositiveInt

from components.explaining.requests import Action, ExplainOptions, GenerateRequest, Wish
from model.config import Config

__all__ = ["Action", "ExplainOptions", "GenerateRequest", "Wish"]

CLAIM = "similarity of meaning, not influence"

Kind = Literal["known", "unknown"]

StrengthFrom = Literal["given", "calibrated", "common", "default"]
"""`calibrated` for this concept, `common` to the concepts that were tried, or neither."""


class Estimate(Config):
    """A number, its 95% interval, and how many cases it rests on."""

    value: float
    low: float
    high: float
    n: NonNegativeInt


class ConceptFound(Config):
    """A concept of the checkpoint."""

    kind: Kind
    concept_id: NonNegativeInt
    name: str
    """Unknown concepts: `Discovered: …` where one was named, else `unknown 17`."""

    description: str = ""
    score: float = 1.0
    """How well it fits what was asked, in [0, 1]: of the letters, not of the meaning."""

    prevalence_share: float | None = None
    """Known concepts: share of the tagged chunks that carry it. None: not on record."""

    name_auc: Estimate | None = None
    """Unknown concepts: how well the name tells held-out chunks that activate it from others.
    None: no name was sought."""

    calibrated_logits: float | None = None
    """Strength at which amplification had the best balance of effect and quality."""


class GeneratedToken(Config):
    """A token and how it came into its place."""

    position: NonNegativeInt
    token_id: NonNegativeInt
    text: str
    probability: float
    """Largest at its position when the position was chosen."""

    commit_order: NonNegativeInt


class Generation(Config):
    """A continuation."""

    request: GenerateRequest
    prompt_tokens: tuple[str, ...]
    """The network's view of the prompt, a token each."""

    text: str
    """What was generated, without special tokens."""

    tokens: tuple[GeneratedToken, ...]
    """In reading order, special tokens by their names."""

    stopped: bool
    """Whether a token that ends texts did so; else n_new was reached."""

    steered: bool = False
    notes: tuple[str, ...] = ()
    """What the reader should know, such as that there is no tokenizer."""


class ConceptContribution(Config):
    """What one concept did for a token or a chunk."""

    kind: Kind
    concept_id: NonNegativeInt
    name: str
    contribution_logits: float
    """Signed, to the logit; of a chunk, the mean over its tokens."""

    signed_share: float
    """Of the magnitude of all parts; of a chunk, the mean over its tokens."""

    n_tokens: PositiveInt
    """Tokens at which it was among those that are kept."""


class Shares(Config):
    """Known, unknown and residual parts of the logits of some tokens."""

    known_share: Estimate
    unknown_share: Estimate
    residual_share: Estimate
    known_signed_share: float
    unknown_signed_share: float
    residual_signed_share: float
    """The same with their signs: what speaks against itself cancels here, and there counts."""


class InputShare(Config):
    """What one position did for the tokens of a chunk; each token has an equal vote."""

    position: NonNegativeInt
    token: str
    signed_share: float


class ChunkInputs(Config):
    """Integrated gradients from [MASK], and how far they are from adding up."""

    shares: tuple[InputShare, ...]
    completeness_error_share: float
    """|Σ contributions − gap| over the gap, summed over the targets; 0 is exact."""

    mean_gap_logits: float
    """Mean |logit of the token − logit where all inputs are [MASK]|."""

    n_targets: PositiveInt
    mean_evaluations: float
    """Passes through the network that a target took."""

    n_not_reached: NonNegativeInt
    """Targets that the limit on passes stopped before their sum was within 2%."""


class TrainingSource(Config):
    """A training chunk like this one: provenance, no claim of influence."""

    rank: PositiveInt
    chunk_id: NonNegativeInt
    doc_id: str
    title: str
    source: str
    domain: str
    licence: str
    start_char: NonNegativeInt
    end_char: NonNegativeInt
    text: str
    n_places: PositiveInt
    """Where this text stands in the training split; it is listed once."""

    cosine: float
    random_below_share: float
    """Share of pairs drawn at random that are less alike than this one."""


class TokenExplanation(Config):
    """The exact account of one token's logit: its parts add up to it."""

    position: NonNegativeInt
    token: str
    chunk_index: NonNegativeInt
    logit: float
    known_logits: float
    unknown_logits: float
    residual_logits: float
    sum_error_logits: float
    """|known + unknown + residual − logit|; the residual is computed by itself."""

    concepts: tuple[ConceptContribution, ...]


class ChunkExplanation(Config):
    """One generated chunk and its three attributions."""

    chunk_index: NonNegativeInt
    start_position: NonNegativeInt
    end_position: NonNegativeInt
    text: str
    n_tokens: PositiveInt
    shares: Shares
    concepts: tuple[ConceptContribution, ...]
    """Known and unknown, by the magnitude of their share."""

    inputs: ChunkInputs | None
    """None: not asked for."""

    sources: tuple[TrainingSource, ...]
    """Empty where there is no index, or no text."""


class IndexAccount(Config):
    """What is known of the index that sources come from."""

    n_chunks: PositiveInt
    recall_at_10: Estimate
    """Share of held-back training chunks whose masked states find their own text."""

    chance_at_10_share: float
    claims: str = CLAIM


class Explanation(Config):
    """A continuation, and why each chunk of it was written."""

    document: Literal["clearstory.explanation/1"] = "clearstory.explanation/1"
    """Raised when a field changes its name or its meaning."""

    checkpoint: str
    """SHA-256 of the weights' manifest, or of the weights where there is none."""

    generation: Generation
    shares: Shares
    """Over all tokens."""

    chunks: tuple[ChunkExplanation, ...]
    tokens: tuple[TokenExplanation, ...]
    largest_sum_error_logits: float
    index: IndexAccount | None
    """None: no index was opened."""

    notes: tuple[str, ...] = ()


class TokenEdit(Config):
    """A stretch of tokens that both texts have, or that one of them has instead."""

    kind: Literal["same", "changed", "removed", "added"]
    before: str
    after: str
    n_before_tokens: NonNegativeInt
    n_after_tokens: NonNegativeInt


class ConceptEffect(Config):
    """What became of one concept, in the unsteered network's own reading of both texts."""

    concept: ConceptFound
    action: Action
    strength_logits: float
    strength_from: StrengthFrom
    strength_n_texts: NonNegativeInt
    """Texts that a calibrated strength rests on; 0 where it was given, or is the default."""

    presence_before: float
    presence_after: float
    """Probability that the text carries it: a noisy OR over its tokens."""

    signed_share_before: float
    signed_share_after: float
    """Of the logits' magnitude as the unsteered network reads the text, mean over its tokens."""


class TextQuality(Config):
    """What a text costs, in the eyes of the unsteered network."""

    loss_nats_per_token: float
    distinct_2_share: float
    """Different pairs of neighbouring tokens, of all pairs."""

    repeated_share: float
    """Tokens that end a run of four the text had before."""

    n_tokens: PositiveInt


class Steered(Config):
    """The text as it was, and as it is with the wishes granted."""

    document: Literal["clearstory.steered/1"] = "clearstory.steered/1"
    wishes: tuple[Wish, ...]
    before: Explanation
    after: Explanation
    edits: tuple[TokenEdit, ...]
    changed_tokens_share: float
    """Tokens of either text that the other lacks, of all tokens of both."""

    effects: tuple[ConceptEffect, ...]
    quality_before: TextQuality
    quality_after: TextQuality
    notes: tuple[str, ...] = ()
