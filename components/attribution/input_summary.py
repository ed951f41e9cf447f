"""How well the input attribution of all texts holds: completeness, deletion, insertion, agreement.

Intervals are over prompts: tokens of one text never pretend to be independent.

Shape suffixes: B target, of all prompts   G prompt   K count of inputs masked
"""

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import torch
from torch import Tensor

from components.attribution.config import AttributeConfig
from components.attribution.inputs import Masked, TracedInputs
from model.input_attribution import completeness_error
from model.input_masking import Foretold
from model.intervals import by_group, ratio_interval

_DRAWS = 1_000
_RATIO_AT = 3
"""Inputs deleted where order and chance are compared in one number."""


def input_summary(
    traced: Sequence[Sequence[TracedInputs]], masked: Sequence[Masked], config: AttributeConfig
) -> dict[str, object]:
    """Facts over all prompts; units are in the names."""
    inputs = [one for text in traced for one in text]
    missing_B = torch.tensor([abs(one.missing) for one in inputs])
    gap_B = torch.tensor([one.gap for one in inputs]).abs()
    prompt_B = np.repeat(np.arange(len(traced)), [len(text) for text in traced])
    return {
        "n_targets": len(inputs),
        "n_parts": config.inputs.n_parts,
        "max_evaluations": config.inputs.max_evaluations,
        "mean_evaluations": float(np.mean([one.evaluations for one in inputs])),
        "tolerance": config.inputs.tolerance,
        "n_not_reached": sum(not one.reached for one in inputs),
        "completeness_error": completeness_error(missing_B, gap_B),
        "completeness_interval": _ratio(missing_B, gap_B, prompt_B, config.seed),
        "mean_absolute_gap_logits": float(gap_B.mean()),
        "largest_replay_error_logits": max(one.replay_error for one in inputs),
        "masking": _masking(masked, config),
    }


def _masking(masked: Sequence[Masked], config: AttributeConfig) -> dict[str, object]:
    prompt_B = np.repeat(np.arange(len(masked)), [len(one.together.rank_B) for one in masked])
    columns = {
        name: torch.cat([vars(one.curves)[name] for one in masked])
        for name in (
            "deletion_BK", "deletion_random_BK", "insertion_BK", "insertion_random_BK",
        )
    }  # fmt: skip
    at = [
        {
            "n_inputs": count,
            **{
                f"{name.removesuffix('_BK')}_logits": _mean(column[:, k], prompt_B, config.seed)
                for name, column in columns.items()
            },
        }
        for k, count in enumerate(config.masking.counts)
    ]
    nearest = min(config.masking.counts, key=lambda count: abs(count - _RATIO_AT))
    k = config.masking.counts.index(nearest)
    deletion, random = columns["deletion_BK"][:, k], columns["deletion_random_BK"][:, k]
    return {
        "n_targets": len(prompt_B),
        "random_orders": config.masking.random_orders,
        "curve": at,
        "deletion_ratio_at": nearest,
        "deletion_ratio": _ratio(deletion, random, prompt_B, config.seed),
        "agreement": {
            "together": _agreement([one.together for one in masked], prompt_B, config.seed),
            "in_parts": _agreement([one.in_parts for one in masked], prompt_B, config.seed),
        },
    }


def _agreement(found: Sequence[Foretold], prompt_B: np.ndarray, seed: int) -> dict[str, object]:
    rank_B, error_B, observed_B, product_B, square_B = (
        torch.cat(column) for column in zip(*(vars(one).values() for one in found), strict=True)
    )
    return {
        "rank_correlation": _mean(rank_B, prompt_B, seed),
        "mean_error_logits": _mean(error_B, prompt_B, seed),
        "mean_observed_logits": _mean(observed_B, prompt_B, seed),
        "slope": _ratio(product_B, square_B, prompt_B, seed),
    }


def _mean(values_B: Tensor, prompt_B: np.ndarray, seed: int) -> dict[str, object]:
    """Mean of the values that are numbers, with its interval and n."""
    counted_B = (~values_B.isnan()).double()
    return _ratio(values_B.nan_to_num(), counted_B, prompt_B, seed)


def _ratio(above_B: Tensor, below_B: Tensor, prompt_B: np.ndarray, seed: int) -> dict[str, object]:
    n_prompts = int(prompt_B.max()) + 1
    above_G, below_G = (
        by_group(values_B.double().numpy(), prompt_B, n_prompts) for values_B in (above_B, below_B)
    )
    return asdict(ratio_interval(above_G, below_G, draws=_DRAWS, seed=seed))
