"""The Bayesian cumulative-link mixed model of fit (paper appendix D). Only importer of PyMC.

    logit P(Y ≤ j)  =  θ_j − (β · pipeline + rater + concept)

    θ_j, in order      normal, SD 2
    β                  normal, SD 1.5
    rater, concept     normal, their SDs half-normal 1

The human name is the reference: exp β is the odds of a higher rating for the pipeline's name.
PyMC is the optional extra `ordinal`.

Shape suffixes: N rows   J threshold   G rater   C concept
"""

import importlib
import importlib.util
import types
from typing import Any

import numpy as np
from scipy import stats

from components.study.config import HIGHEST, LOWEST
from components.study.figures import Figure
from components.study.ratings import Floats, Pairs

_CHAINS = 4
_THRESHOLD_SD, _EFFECT_SD, _SPREAD_SD = 2.0, 1.5, 1.0
_RHAT_LIMIT = 1.01


class MissingExtraError(ValueError):
    """PyMC is not installed. The message names the extra that brings it."""


def require_extra() -> None:
    """Raise MissingExtraError before any work where PyMC is missing."""
    if importlib.util.find_spec("pymc") is None:
        raise MissingExtraError(
            "the cumulative-link model needs PyMC, which is not installed: pip install "
            "'clearstory[ordinal]', or leave ordinal off (without --ordinal)"
        )


def cumulative_link(pairs: Pairs, *, draws: int, seed: int) -> dict[str, Figure]:
    """Odds ratio and P(β > 0) from the posterior, by NUTS in four chains, one after the other."""
    require_extra()
    pymc = _pymc()
    with _model(pymc, pairs):
        trace = pymc.sample(
            draws, tune=draws, chains=_CHAINS, cores=1, random_seed=seed, progressbar=False,
            target_accept=0.9,
        )  # fmt: skip
    effect_N = np.asarray(trace.posterior["effect"]).ravel()
    ratio_N = np.exp(effect_N)
    low, high = np.percentile(ratio_N, [2.5, 97.5]).tolist()
    note = _diagnosis(trace, np.asarray(trace.posterior["effect"]))
    # What the sampler itself leaves uncertain about a probability: draws as if independent.
    n_above = int((effect_N > 0).sum())
    sampled = stats.binomtest(n_above, len(effect_N)).proportion_ci(method="wilson")
    return {
        "odds_ratio": Figure(
            value=float(np.median(ratio_N)), low=low, high=high, n=pairs.first.n, n_of="pairs",
            unit="odds ratio", note=f"posterior median; {note}",
        ),
        "posterior_probability": Figure(
            value=n_above / len(effect_N), low=float(sampled.low), high=float(sampled.high),
            n=len(effect_N), n_of="posterior draws", unit="P(β > 0)", note=note,
        ),
    }  # fmt: skip


def _pymc() -> types.ModuleType:
    """PyMC, which loads ArviZ, whose style folder sits at a place that matplotlib 3.11 gave up."""
    style = importlib.import_module("matplotlib.style")
    if not hasattr(style, "core"):
        vars(style)["core"] = style
    import pymc

    return pymc


def _model(pymc: Any, pairs: Pairs) -> Any:
    """The model with both ratings of every pair as its data."""
    one, other = pairs.first, pairs.second
    value_N = np.concatenate([one.value_N, other.value_N]).astype(np.int64) - LOWEST
    is_pipeline_N = np.repeat([1.0, 0.0], [one.n, other.n])
    rater_N = np.concatenate([one.rater_N, other.rater_N])
    concept_N = np.concatenate([one.concept_N, other.concept_N])
    start_J = np.linspace(-1.5, 1.5, HIGHEST - LOWEST)
    with pymc.Model() as model:
        effect = pymc.Normal("effect", 0.0, _EFFECT_SD)
        # Deviates are scaled after they are drawn: the sampler stalls in the funnel otherwise.
        raters = pymc.HalfNormal("rater_sd", _SPREAD_SD) * pymc.Normal(
            "rater_z", 0.0, 1.0, shape=int(rater_N.max()) + 1
        )
        concepts = pymc.HalfNormal("concept_sd", _SPREAD_SD) * pymc.Normal(
            "concept_z", 0.0, 1.0, shape=int(concept_N.max()) + 1
        )
        thresholds = pymc.Normal(
            "threshold", 0.0, _THRESHOLD_SD, shape=len(start_J), initval=start_J,
            transform=pymc.distributions.transforms.ordered,
        )  # fmt: skip
        eta = effect * is_pipeline_N + raters[rater_N] + concepts[concept_N]
        pymc.OrderedLogistic("rating", eta=eta, cutpoints=thresholds, observed=value_N)
    return model


def _diagnosis(trace: Any, effect: Floats) -> str:
    """What says whether the chains can be trusted: R̂ of β and divergences."""
    rhat = split_rhat(effect)
    divergences = int(np.asarray(trace.sample_stats["diverging"]).sum())
    verdict = "" if rhat <= _RHAT_LIMIT and not divergences else "; do not trust it: draw more"
    return f"{_CHAINS} chains, R̂ {rhat:.3f}, {divergences} divergences{verdict}"


def split_rhat(draws: Floats) -> float:
    """Potential scale reduction of (chains, draws), each chain cut in two."""
    half = draws.shape[1] // 2
    parts = np.concatenate([draws[:, :half], draws[:, half : 2 * half]])
    within = parts.var(axis=1, ddof=1).mean()
    between = parts.mean(axis=1).var(ddof=1)
    return float(np.sqrt((half - 1) / half + between / within))
