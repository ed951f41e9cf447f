"""Concepts removed: what their contributions foretell, and what happens (method §0.4, Agreement).

Shape suffixes: N token of the text, in reading order   L layer   C concept   B commit
"""

from collections.abc import Sequence
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
    n = min(how.targets, len(commits_N))
    rows = torch.linspace(0, len(commits_N) - 1, n).round().long().tolist()
    pairs = sampled(lm, found, rows, how.concepts, [config.seed, prompt_id])
    state_ND, token_N = trace.state_ND[commits_N], trace.token_N[commits_N]
    seen = effects(lm, state_ND, token_N, found, pairs, how.n_likeliest)
    return Removals(tuple(pairs), seen, _upstream(lm, trace, commits_N, found, rows, config))


def _upstream(
    lm: LanguageModel, trace: Trace, commits_N: Tensor, found: ConceptAttribution,
    rows: Sequence[int], config: AttributeConfig,
) -> Upstream:  # fmt: skip
    n_layers = lm.config.backbone.n_layers
    layers = tuple(dict.fromkeys((n_layers - 1, n_layers // 2)))
    listed = [one.concept for one in strongest(found, slice(None))]
    concepts = tuple(
        concept
        for kind in ("known", "unknown")
        for concept in [one for one in listed if one.kind == kind][: config.removal.upstream]
    )
    commits = commits_N[list(rows)].tolist()
    foretold = [[-contribution(found, Removal(row, one)) for row in rows] for one in concepts]
    return Upstream(
        layers, concepts, torch.tensor(foretold), upstream(lm, trace, commits, concepts, layers)
    )
