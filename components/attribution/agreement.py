"""What contributions foretold of removals, beside what was observed (method §0.4, Agreement).

    logit, at the bottleneck      must agree: one correlation over all pairs, and the largest error
    log-probability               nearly; beside it, how far the token's own logit alone gets
    logit, upstream by layer      measured: nothing says that it must agree

Shape suffixes: M pair of a token and a concept   L layer   C concept   B commit
"""

from collections.abc import Sequence
from dataclasses import asdict

import torch
from torch import Tensor

from components.attribution.removals import Removals
from model.input_masking import rank_correlation
from model.intervals import ratio_interval

_DRAWS = 1_000
_KINDS = ("known", "unknown")


def agreement(removals: Sequence[Removals], seed: int) -> dict[str, object]:
    """Figures over all prompts, known and unknown concepts apart."""
    layers = removals[0].upstream.layers
    return {
        "at_the_bottleneck": {kind: _exact(removals, kind) for kind in _KINDS},
        "log_probability": {kind: _log_probability(removals, kind, seed) for kind in _KINDS},
        "upstream": [
            {
                "after_layer": layer,
                **{kind: _upstream(removals, kind, row, seed) for kind in _KINDS},
            }
            for row, layer in enumerate(layers)
        ],
    }


def over_prompts(above: Sequence[Tensor], below: Sequence[Tensor], seed: int) -> dict[str, object]:
    """Σ above / Σ below with its interval over the prompts, whose tensors these are."""
    columns = [
        torch.stack([values.double().sum() for values in side]).numpy() for side in (above, below)
    ]
    return asdict(ratio_interval(*columns, draws=_DRAWS, seed=seed))


def _exact(removals: Sequence[Removals], kind: str) -> dict[str, object]:
    foretold_M = torch.cat([one.at_bottleneck.foretold_M[_of(one, kind)] for one in removals])
    observed_M = torch.cat([one.at_bottleneck.observed_M[_of(one, kind)] for one in removals])
    return {
        "n_pairs": len(foretold_M),
        "n_pairs_not_kept": int((foretold_M == 0).sum()),
        "rank_correlation": float(rank_correlation(foretold_M.double(), observed_M.double())),
        "largest_error_logits": float((foretold_M - observed_M).abs().max()),
        "mean_observed_logits": float(observed_M.abs().mean()),
    }


def _log_probability(removals: Sequence[Removals], kind: str, seed: int) -> dict[str, object]:
    effects = [(one.at_bottleneck, _of(one, kind)) for one in removals]
    foretold = [one.foretold_log_M[of] for one, of in effects]
    observed = [one.observed_log_M[of] for one, of in effects]
    own_logit = [one.foretold_M[of] for one, of in effects]
    return {
        **_compared(foretold, observed, seed),
        "mean_error_by_own_logit": _mean_error(own_logit, observed, seed),
    }


def _upstream(removals: Sequence[Removals], kind: str, row: int, seed: int) -> dict[str, object]:
    foretold, observed = [], []
    for one in removals:
        mine = torch.tensor([concept.kind == kind for concept in one.upstream.concepts])
        foretold.append(one.upstream.foretold_CB[mine].flatten())
        observed.append(one.upstream.observed_LCB[row][mine].flatten())
    squares = [values.square() for values in foretold]
    products = [one * other for one, other in zip(foretold, observed, strict=True)]
    return {
        **_compared(foretold, observed, seed),
        "slope": over_prompts(products, squares, seed),
    }


def _compared(
    foretold: Sequence[Tensor], observed: Sequence[Tensor], seed: int
) -> dict[str, object]:
    """In the unit of both, nats or logits. The correlation is the mean of the prompts' own."""
    ranks = [
        rank_correlation(one.double(), other.double())
        for one, other in zip(foretold, observed, strict=True)
    ]
    known = [rank.nan_to_num() for rank in ranks]
    return {
        "n_pairs": sum(map(len, foretold)),
        "rank_correlation": over_prompts(known, [~rank.isnan() for rank in ranks], seed),
        "mean_error": _mean_error(foretold, observed, seed),
        "mean_observed": _mean([values.abs() for values in observed], seed),
    }


def _mean_error(
    foretold: Sequence[Tensor], observed: Sequence[Tensor], seed: int
) -> dict[str, object]:
    pairs = zip(foretold, observed, strict=True)
    return _mean([(one - other).abs() for one, other in pairs], seed)


def _mean(values: Sequence[Tensor], seed: int) -> dict[str, object]:
    return over_prompts(values, [torch.ones(len(one)) for one in values], seed)


def _of(one: Removals, kind: str) -> Tensor:
    return torch.tensor([pair.concept.kind == kind for pair in one.pairs])
