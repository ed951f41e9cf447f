"""Gaussian mixed models of fit (paper appendix D). Only importer of statsmodels.

    rating  =  mean + β · pipeline + rater + concept (+ name) + error

β is the difference pipeline − human; the rest are crossed random effects. The third, one effect a
name, says that a name is good or bad for all its raters: without it β's interval takes ratings of
one name for independent ones and comes out too narrow.

Shape suffixes: N rows   G group of a random effect
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from components.study.figures import Figure
from components.study.ratings import Floats, Integers, Pairs

_NORMAL_95 = 1.959963984540054
_SAME = 1e-9


class NoFitError(ValueError):
    """The ratings leave a model nothing to estimate. The message says why."""


@dataclass(frozen=True)
class MixedFit:
    """One fitted model; standard deviations in points."""

    effect: float
    standard_error: float
    sds: Mapping[str, float]
    residual_sd: float
    remarks: tuple[str, ...]
    """What the optimiser warned of: a variance at zero, no convergence."""


def mixed(pairs: Pairs, *, with_names: bool) -> MixedFit:
    """Fit the model by REML to both ratings of every pair. Raises NoFitError where it cannot be."""
    one, other = pairs.first, pairs.second
    if not _error_left(pairs, with_names=with_names):
        raise NoFitError(
            f"mixed model: the effects explain all {one.n} differences, so that no error is left "
            f"to judge them by; ask more raters"
        )
    value_N = np.concatenate([one.value_N, other.value_N])
    is_pipeline_N = np.repeat([1.0, 0.0], [one.n, other.n])
    concept_N = np.concatenate([one.concept_N, other.concept_N])
    groups = {"rater": np.concatenate([one.rater_N, other.rater_N]), "concept": concept_N}
    if with_names:
        groups["name"] = 2 * concept_N + is_pipeline_N.astype(np.int64)
    return _fitted(value_N, is_pipeline_N, groups)


def figures(found: MixedFit, pairs: Pairs, name: str, note: str) -> dict[str, Figure]:
    """The difference with its Wald interval, and what varies by how much."""
    reach = _NORMAL_95 * found.standard_error
    spread = ", ".join(f"{group} {sd:.2f}" for group, sd in found.sds.items())
    remarks = "; ".join((note, f"SDs: {spread}, rest {found.residual_sd:.2f}", *found.remarks))
    return {
        name: Figure(
            value=found.effect, low=found.effect - reach, high=found.effect + reach,
            n=pairs.first.n, n_of="pairs", unit="points", note=remarks,
        )
    }  # fmt: skip


def _error_left(pairs: Pairs, *, with_names: bool) -> bool:
    """Whether differences vary, within concepts where each name has an effect of its own."""
    difference_N, centre_N = pairs.difference_N, pairs.difference_N.mean()
    if with_names:
        mean_C = pairs.first.by_concept(difference_N) / np.maximum(pairs.first.count_C, 1)
        centre_N = mean_C[pairs.first.concept_N]
    return bool(np.abs(difference_N - centre_N).max() > _SAME)


def _fitted(value_N: Floats, is_pipeline_N: Floats, groups: Mapping[str, Integers]) -> MixedFit:
    from statsmodels.regression.mixed_linear_model import MixedLM, VCSpec

    indicators = [_indicator(group_N) for group_N in groups.values()]
    columns = [[f"{name}{g}" for g in range(each.shape[1])]
               for name, each in zip(groups, indicators, strict=True)]  # fmt: skip
    components = VCSpec(list(groups), [[names] for names in columns], [[m] for m in indicators])
    fixed = np.column_stack([np.ones_like(value_N), is_pipeline_N])
    # Crossed effects are variance components inside one group that holds every row.
    model = MixedLM(value_N, fixed, groups=np.zeros(len(value_N)), exog_vc=components)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        # A variance near zero is common here. Gradients end beside the optimum then, at a lower
        # likelihood and after many times the steps; Powell's method finds the zero.
        try:
            result = model.fit(reml=True, method=["powell"])
        except np.linalg.LinAlgError as error:
            raise NoFitError(f"mixed model with {', '.join(groups)}: {error}") from error
    sds = np.sqrt(np.maximum(result.vcomp, 0.0)).tolist()
    return MixedFit(
        effect=float(result.fe_params[1]),
        standard_error=float(result.bse_fe[1]),
        sds=dict(zip(groups, sds, strict=True)),
        residual_sd=float(np.sqrt(result.scale)),
        remarks=tuple(sorted({str(each.message).strip() for each in told})),
    )


def _indicator(group_N: Integers) -> Floats:
    """(N, G): one column a group that occurs."""
    return (group_N[:, None] == np.unique(group_N)[None, :]).astype(np.float64)
