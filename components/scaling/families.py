"""Both laws of one family, with intervals, and what speaks against reading them (paper §8.2).

Intervals are the 2.5th and 97.5th percentile over resamples of the runs. Runs are drawn within
their budget, so every resample keeps the design; the joint law starts from the full fit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from components.scaling.caveats import FEW_SIZES, MIN_RUNS_FOR_JOINT, caveats_of
from components.scaling.config import FitConfig
from components.scaling.isoflop import Exponents, Slice, fit_exponents, fit_slice
from components.scaling.law import LAST_STEPS, RESAMPLE_STEPS, Floats, JointLaw, fit_joint
from components.scaling.points import Point, Table, table

MIN_SHARE_OF_DRAWS = 0.5

Law = TypeVar("Law")


@dataclass(frozen=True)
class Estimate:
    """A fitted number and its 95% interval; no interval where too few resamples gave one."""

    value: float
    low: float | None
    high: float | None
    unit: str


@dataclass(frozen=True)
class SliceFit:
    """One budget's parabola, with the intervals of its vertex."""

    parabola: Slice
    n_runs: int
    optimal_parameters: Estimate | None
    optimal_loss_nats: Estimate | None


@dataclass(frozen=True)
class Prediction:
    """The least loss at a budget, by the joint law."""

    budget_flops: float
    factor: float
    optimal_parameters: Estimate
    loss_nats: Estimate


@dataclass(frozen=True)
class FamilyFit:
    """What the runs of one family say."""

    family: str
    points: list[Point]
    slices: list[SliceFit]
    exponents: dict[str, Estimate]
    joint: JointLaw | None
    joint_estimates: dict[str, Estimate]
    predictions: list[Prediction]
    caveats: list[str]


@dataclass(frozen=True)
class _Resample:
    """The laws of one resample of the runs."""

    slices: list[Slice]
    exponents: Exponents | None
    joint: JointLaw | None


def fit_family(family: str, points: Sequence[Point], config: FitConfig) -> FamilyFit:
    """Parabolas, exponents and the joint law of one family."""
    columns = table(points)
    budgets = sorted(set(columns.budget_flops_N.tolist()))
    full = _laws(columns, budgets, np.ones(len(columns)), starts=(), delta=config.huber_delta)
    resamples = _resamples(columns, budgets, full, config)
    predictions = [
        _prediction(columns, full.joint, resamples, factor, config)
        for factor in config.extrapolate_factors
        if full.joint is not None
    ]
    slices = [
        _slice_fit(columns, resamples, index, parabola)
        for index, parabola in enumerate(full.slices)
    ]
    exponents = _exponent_estimates(full, resamples)
    joint_estimates = _joint_estimates(full, resamples)
    estimates = exponents | joint_estimates
    return FamilyFit(
        family=family,
        points=list(points),
        slices=slices,
        exponents=exponents,
        joint=full.joint,
        joint_estimates=joint_estimates,
        predictions=predictions,
        caveats=[
            *caveats_of(columns, full.slices, full.exponents, full.joint),
            *_outside(columns, predictions),
            *_bare(estimates),
        ],
    )


@dataclass(frozen=True)
class Optimum:
    """The best network for a budget, by a joint law."""

    n_parameters: float
    loss_nats: float


def least_loss(law: JointLaw, columns: Table, flops: float, limit_factor: float) -> Optimum:
    """The best network for `flops`; refused beyond the factor allowed, for sizes as for budgets.

    FLOPs per parameter and token are those of the runs of the largest budget: with small
    networks the head and attention weigh more than the 6 of the classic form.
    """
    largest = float(columns.budget_flops_N.max())
    if flops > limit_factor * largest:
        raise ValueError(
            f"{flops:.3g} FLOPs is {flops / largest:.3g} × the largest budget measured "
            f"({largest:.3g}); this law is read up to {limit_factor:g} ×. Measure a larger budget"
        )
    top_N = columns.budget_flops_N == largest
    flops_per_pair = float(
        np.median(
            columns.flops_N[top_N] / (columns.n_parameters_N[top_N] * columns.n_tokens_N[top_N])
        )
    )
    n_parameters = float(
        np.clip(
            law.optimal_parameters(flops, flops_per_pair),
            columns.n_parameters_N.min() / limit_factor,
            columns.n_parameters_N.max() * limit_factor,
        )
    )
    n_tokens = flops / (flops_per_pair * n_parameters)
    loss_N = law.predict(np.array([n_parameters]), np.array([n_tokens]))
    return Optimum(n_parameters, float(loss_N[0]))


def _laws(
    columns: Table,
    budgets: Sequence[float],
    weight_N: Floats,
    starts: Sequence[JointLaw],
    delta: float,
) -> _Resample:
    slices = []
    for budget in budgets:
        inside_N = columns.budget_flops_N == budget
        slices.append(
            fit_slice(
                budget,
                columns.n_parameters_N[inside_N],
                columns.loss_nats_N[inside_N],
                weight_N[inside_N],
            )
        )
    joint = None
    if len(columns) >= MIN_RUNS_FOR_JOINT:
        joint = fit_joint(
            columns.n_parameters_N, columns.n_tokens_N, columns.loss_nats_N,
            weight_N=weight_N, starts=starts, delta=delta,
            steps=RESAMPLE_STEPS if starts else LAST_STEPS,
        )  # fmt: skip
    return _Resample(slices, fit_exponents(slices), joint)


def _resamples(
    columns: Table, budgets: Sequence[float], full: _Resample, config: FitConfig
) -> list[_Resample]:
    starts = () if full.joint is None else (full.joint,)
    found = []
    for draw in range(config.bootstrap_draws):
        random = np.random.default_rng((config.seed, draw))
        weight_N = np.zeros(len(columns))
        for budget in budgets:
            inside = np.flatnonzero(columns.budget_flops_N == budget)
            np.add.at(weight_N, random.choice(inside, size=len(inside)), 1.0)
        found.append(_laws(columns, budgets, weight_N, starts, config.huber_delta))
    return found


def _slice_fit(
    columns: Table, resamples: Sequence[_Resample], index: int, parabola: Slice
) -> SliceFit:
    n_runs = int(np.sum(columns.budget_flops_N == parabola.budget_flops))
    if parabola.problem:
        return SliceFit(parabola, n_runs, None, None)
    sizes = len(set(columns.n_parameters_N[columns.budget_flops_N == parabola.budget_flops]))
    drawn = [draw.slices[index] for draw in resamples] if sizes >= FEW_SIZES else []
    kept = [piece if not piece.problem else None for piece in drawn]
    return SliceFit(
        parabola,
        n_runs,
        _estimate(parabola, kept, lambda piece: piece.optimal_parameters, "parameters"),
        _estimate(parabola, kept, lambda piece: piece.optimal_loss_nats, "nats per token"),
    )


def _exponent_estimates(full: _Resample, resamples: Sequence[_Resample]) -> dict[str, Estimate]:
    if full.exponents is None:
        return {}
    drawn = [draw.exponents for draw in resamples] if full.exponents.n_slices > 2 else []
    return {
        "alpha_P": _estimate(
            full.exponents, drawn, lambda found: found.parameters, "exponent of FLOPs"
        ),
        "alpha_L": _estimate(full.exponents, drawn, lambda found: found.loss, "exponent of FLOPs"),
    }


def _joint_estimates(full: _Resample, resamples: Sequence[_Resample]) -> dict[str, Estimate]:
    if full.joint is None:
        return {}
    readings: dict[str, tuple[Callable[[JointLaw], float], str]] = {
        "A": (lambda law: law.a, "nats · parameters^alpha"),
        "B": (lambda law: law.b, "nats · tokens^beta"),
        "E": (lambda law: law.e_nats, "nats per token"),
        "alpha": (lambda law: law.alpha, "exponent of parameters"),
        "beta": (lambda law: law.beta, "exponent of tokens"),
        "parameters_exponent": (lambda law: law.parameters_exponent, "exponent of FLOPs"),
    }
    drawn = [draw.joint for draw in resamples]
    return {
        name: _estimate(full.joint, drawn, reading, unit)
        for name, (reading, unit) in readings.items()
    }


def _prediction(
    columns: Table, law: JointLaw, resamples: Sequence[_Resample], factor: float, config: FitConfig
) -> Prediction:
    flops = factor * float(columns.budget_flops_N.max())

    def best(one: JointLaw) -> Optimum:
        return least_loss(one, columns, flops, config.refuse_beyond_factor)

    drawn = [draw.joint for draw in resamples]
    return Prediction(
        budget_flops=flops,
        factor=factor,
        optimal_parameters=_estimate(law, drawn, lambda one: best(one).n_parameters, "parameters"),
        loss_nats=_estimate(law, drawn, lambda one: best(one).loss_nats, "nats per token"),
    )


def _estimate(
    full: Law, drawn: Sequence[Law | None], reading: Callable[[Law], float], unit: str
) -> Estimate:
    """The reading of the full fit, with percentiles over the resamples that gave a law."""
    values = [reading(law) for law in drawn if law is not None]
    if not values or len(values) < MIN_SHARE_OF_DRAWS * len(drawn):
        return Estimate(reading(full), None, None, unit)
    low, high = np.percentile(values, [2.5, 97.5])
    return Estimate(reading(full), float(low), float(high), unit)


def _outside(columns: Table, predictions: Sequence[Prediction]) -> list[str]:
    smallest, largest = columns.n_parameters_N.min(), columns.n_parameters_N.max()
    return [
        f"the best size at {found.budget_flops:.3g} FLOPs, {found.optimal_parameters.value:.2g} "
        f"parameters, lies outside the sizes tried ({smallest:.2g} to {largest:.2g})"
        for found in predictions
        if not smallest <= found.optimal_parameters.value <= largest
    ]


def _bare(estimates: dict[str, Estimate]) -> list[str]:
    bare = [name for name, estimate in estimates.items() if estimate.low is None]
    if not bare:
        return []
    return [f"no interval for {', '.join(bare)}: too few resamples determine it"]
