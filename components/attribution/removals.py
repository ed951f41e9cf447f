"""Concepts removed: what their contributions foretell, and what happens (method §0.4, Agreement).

Shape suffixes: N token of the text, in reading order   L layer   C concept   B commit
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from components.attribution.config import AttributeConfig
from model.attribution import ConceptAttribution
from model.concept_effects import Effects, Removal, contribution, effects, sampled, upstream
from model.concept_shares import strongest
from model.directions import ConceptRef
from model.language_model import LanguageModel
from model.trace import Trace


@dataclass(frozen=True)
class Upstream:
    """Concepts of a text, their parts taken from the states after some layers."""

    layers: tuple[int, ...]
    concepts: tuple[ConceptRef, ...]
    foretold_CB: Tensor
    observed_LCB: Tensor


@dataclass(frozen=True)
class Removals:
    """What was removed from one text, and what came of it."""

    pairs: tuple[Removal, ...]
    at_bottleneck: Effects
    upstream: Upstream


def remove_concepts(
    lm: LanguageModel, trace: Trace, commits_N: Tensor, found: ConceptAttribution, prompt_id: int,
    config: AttributeConfig,
) -> Removals:  # fmt: skip
    """Remove concepts of some tokens, evenly spread over the text."""
    how = config.removal
    rows = _spread(len(commits_N), how.targets)
    pairs = sampled(lm, found, rows, how.concepts, [config.seed, prompt_id])
    state_ND, token_N = trace.state_ND[commits_N], trace.token_N[commits_N]
    seen = effects(lm, state_ND, token_N, found, pairs, how.n_likeliest)
    return Removals(tuple(pairs), seen, _upstream(lm, trace, commits_N, found, config))


def _spread(n_tokens: int, most: int) -> list[int]:
    """At most so many rows of a text, evenly spread."""
    rows: list[int] = torch.linspace(0, n_tokens - 1, min(most, n_tokens)).round().long().tolist()
    return rows


def _upstream(
    lm: LanguageModel, trace: Trace, commits_N: Tensor, found: ConceptAttribution,
    config: AttributeConfig,
) -> Upstream:  # fmt: skip
    rows = _spread(len(commits_N), config.removal.upstream_targets)
    n_layers = lm.config.backbone.n_layers
    layers = tuple(dict.fromkeys((n_layers - 1, n_layers // 2)))
    listed = [one.concept for one in strongest(found, slice(None))]
    concepts = tuple(
        concept
        for kind in ("known", "unknown")
        for concept in [one for one in listed if one.kind == kind][: config.removal.upstream]
    )
    commits: list[int] = commits_N[rows].tolist()
    foretold = [[-contribution(found, Removal(row, one)) for row in rows] for one in concepts]
    return Upstream(
        layers, concepts, torch.tensor(foretold), upstream(lm, trace, commits, concepts, layers)
    )
