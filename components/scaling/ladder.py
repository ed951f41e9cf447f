"""Plan a ladder: every family at every budget in every size, tokens chosen to fit (paper §8.1).

FLOPs are those of `model.accounting`: head, attention and concept module counted, so that at one
budget a small network with concepts sees clearly fewer tokens than one without.
"""

import math
from dataclasses import dataclass

from components.scaling.config import LadderConfig, ScalePoint, Size
from model import accounting
from model.config import Family, LanguageModelConfig
from model.tokenizer import SpecialIds

TOKENS_PER_PARAMETER = 20.0
"""Roughly what is optimal for autoregressive networks; a ladder only centres its sizes on it."""


@dataclass(frozen=True)
class Settled:
    """A point once the data are known: its network, and how long it trains."""

    network: LanguageModelConfig
    n_steps: int
    n_tokens: int
    flops: float

    @property
    def n_parameters(self) -> int:
        """N of the laws: the backbone and the concept heads, without the embedding and without
        the two factors of the unknown embeddings."""
        counted = accounting.parameters(self.network)
        return counted.backbone + counted.known + counted.unknown // 2

    @property
    def n_backbone_parameters(self) -> int:
        return accounting.parameters(self.network).backbone


def plan(ladder: LadderConfig) -> list[ScalePoint]:
    """The points, by family, budget, size, seed. Their names say which they are."""
    return [
        ScalePoint(
            name=_name(family, budget, size, seed),
            family=family,
            size=size,
            budget_flops=budget,
            seed=seed,
            training=ladder.training,
            tolerance=ladder.tolerance,
            estimators=ladder.estimators,
            evaluation_tokens=ladder.evaluation_tokens,
            evaluation_batch_sequences=ladder.evaluation_batch_sequences,
        )
        for family in ladder.families
        for budget in _budgets(ladder, family)
        for size in _sizes(ladder, budget)
        for seed in ladder.seeds
    ]


def _budgets(ladder: LadderConfig, family: Family) -> tuple[float, ...]:
    if family.endswith("concept") and ladder.concept_budgets_flops:
        return ladder.concept_budgets_flops
    return ladder.budgets_flops


def _sizes(ladder: LadderConfig, budget_flops: float) -> list[Size]:
    """Sizes around the one that would see TOKENS_PER_PARAMETER, in the order of the ladder."""
    if not ladder.sizes_per_budget:
        return list(ladder.sizes)
    best = math.sqrt(budget_flops / (6.0 * TOKENS_PER_PARAMETER))

    def distance(size: Size) -> float:
        return abs(math.log(_backbone_parameters(size) / best))

    nearest = sorted(ladder.sizes, key=distance)[: ladder.sizes_per_budget]
    return [size for size in ladder.sizes if size in nearest]


def _backbone_parameters(size: Size) -> int:
    """Nearly: norms are left out."""
    grouped = size.n_kv_heads * size.width // size.n_heads
    return size.n_layers * size.width * (2 * size.width + 2 * grouped + 3 * size.mlp_width)


def library(size: Size, n_known: int) -> int:
    """Concepts that a network of this size learns: ids below this, the commonest first."""
    return min(size.n_known, n_known) if size.n_known else n_known


def _name(family: str, budget_flops: float, size: Size, seed: int) -> str:
    """Short, and fit for a file: cdlm-4e12-w64x3-s0."""
    budget = f"{budget_flops:.3g}".replace("+", "")
    return f"{family}-{budget}-w{size.width}x{size.n_layers}-s{seed}"


def settle(point: ScalePoint, *, vocab_size: int, n_known: int, specials: SpecialIds) -> Settled:
    """Choose the steps that come nearest to the budget; refuse what misses it too far."""
    network = point.network().language_model(
        vocab_size=vocab_size, n_known=library(point.size, n_known), specials=specials
    )
    training = point.training
    tokens_per_step = training.batch_sequences * training.length
    per_token = accounting.training_flops_per_token(network, training.length)
    n_steps = max(1, round(point.budget_flops / (per_token * tokens_per_step)))
    flops = n_steps * tokens_per_step * per_token
    missed = flops / point.budget_flops - 1
    if abs(missed) > point.tolerance:
        raise ValueError(
            f"point {point.name} would spend {flops:.3g} FLOPs in {n_steps} step(s) of "
            f"{tokens_per_step} tokens, {missed:+.0%} of its budget of {point.budget_flops:.3g} "
            f"(limit {point.tolerance:.0%}); lower batch_sequences or raise the budget"
        )
    return Settled(network, n_steps, n_steps * tokens_per_step, flops)
