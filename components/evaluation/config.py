"""Config of the evaluation stage (paper §7)."""

from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from components.capability.config import CapabilityConfig
from model.config import Config

Split = Literal["valid", "test"]


class EvaluateConfig(Config):
    """What is measured, on how much text, with how many draws."""

    splits: tuple[Split, ...] = Field(default=("valid", "test"), min_length=1)
    """Held-out splits. Training text is never measured."""

    length: PositiveInt
    """Tokens of a window; at most what the network was trained on."""

    batch_sequences: PositiveInt = 8
    seed: NonNegativeInt = 0

    max_tokens: PositiveInt = 100_000_000
    """Held-out tokens read, evenly spread, at most all there are. The paper uses 100M."""

    estimator_tokens: PositiveInt = 16_384
    """Held-out tokens for each rate of the estimators beside the bound (grid, MDLM), evenly
    spread. They are there to compare estimators; nothing else rests on them."""

    elbo_samples: PositiveInt = 1
    """Draws of the rates of each block, for the bound and the bits per byte."""

    unigram_tokens: PositiveInt = 20_000_000
    """Training tokens counted for the unigram cross-entropy, evenly spread."""

    min_positives: PositiveInt = 20
    """Held-out chunks a concept needs for an AUROC."""

    agreement_tokens: PositiveInt = 256
    """Tokens on which foretold and observed changes of a logit are compared."""

    alignment_tokens: PositiveInt = 20
    """Top tokens of a concept that the judge reads. The paper does not say; 20 here."""

    alignment_concepts: PositiveInt = 1000
    """Concepts judged, evenly spread over the library."""

    bootstrap_draws: PositiveInt = Field(default=1000, ge=1000)
    embedder: str
    """Encoder of the offline judge, by name."""

    capability: CapabilityConfig | None = None
    """Packaged benchmarks to answer beside the held-out text. None: none, as in every recipe of a
    small network, which sits at chance on them; `python -m components.harness capability` asks
    any checkpoint."""
