"""Fit scaling laws to finished runs (paper §8.2). Measuring a run is `components.scaling.point`."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from components import contracts
from components.scaling import figure
from components.scaling.config import FitConfig
from components.scaling.families import Estimate, FamilyFit, Prediction, SliceFit, fit_family
from components.scaling.points import Point, read_point, table, write_csv


def fit(curves: Sequence[Path], fitted: Path, config: FitConfig) -> int:
    """Fit the laws of each family. Returns the number of runs they rest on."""
    points = sorted(
        (read_point(curve, config.estimator) for curve in curves),
        key=lambda point: (point.family, point.budget_flops, point.n_parameters, point.seed),
    )
    _check(points)
    families = {
        family: fit_family(family, [point for point in points if point.family == family], config)
        for family in dict.fromkeys(point.family for point in points)
    }
    write_csv(points, fitted / "points.csv")
    (fitted / "fit.json").write_text(json.dumps(_as_json(families, config), indent=1) + "\n")
    figure.draw(families, fitted / "curve.png")
    contracts.seal(fitted, contracts.SCALING_FIT)
    return len(points)


def _check(points: Sequence[Point]) -> None:
    if not points:
        raise ValueError("no runs to fit laws to; give the curves of a ladder")
    seen: dict[tuple[object, ...], str] = {}
    for point in points:
        facts = (point.family, point.budget_flops, point.n_parameters, point.n_tokens, point.seed)
        if facts in seen:
            raise ValueError(
                f"runs {seen[facts]} and {point.name} are the same point of the ladder "
                f"(family, budget, size, tokens and seed); give each run once"
            )
        seen[facts] = point.name


def _as_json(families: dict[str, FamilyFit], config: FitConfig) -> dict[str, object]:
    return {
        "form": "L(N, D) = E + A / N^alpha + B / D^beta; per budget L = a (ln N)^2 + b ln N + c",
        "n_runs": sum(len(fit.points) for fit in families.values()),
        "huber_delta": config.huber_delta,
        "bootstrap_draws": config.bootstrap_draws,
        "interval": "95%, percentiles over resamples of the runs within each budget",
        "refused_beyond_factor": config.refuse_beyond_factor,
        "families": {name: _family_json(fit) for name, fit in families.items()},
    }


def _family_json(fit: FamilyFit) -> dict[str, object]:
    columns = table(fit.points)
    diagnosis: dict[str, object] = {}
    if fit.joint is not None:
        predicted_N = fit.joint.predict(columns.n_parameters_N, columns.n_tokens_N)
        residual_N = np.log(columns.loss_nats_N) - np.log(predicted_N)
        diagnosis = {
            "objective": fit.joint.objective,
            "largest_log_residual": float(np.abs(residual_N).max()),
            "estimates": {name: asdict(found) for name, found in fit.joint_estimates.items()},
        }
    return {
        "n_runs": len(fit.points),
        "estimator": fit.points[0].estimator,
        "isoflop": [_slice_json(found) for found in fit.slices],
        "exponents": {name: asdict(found) for name, found in fit.exponents.items()},
        "joint": diagnosis,
        "extrapolation": [_prediction_json(found) for found in fit.predictions],
        "caveats": fit.caveats,
    }


def _slice_json(found: SliceFit) -> dict[str, object]:
    counts = not found.parabola.problem
    return {
        "budget_flops": found.parabola.budget_flops,
        "n_runs": found.n_runs,
        "optimal_parameters": _or_none(found.optimal_parameters),
        "optimal_loss": _or_none(found.optimal_loss_nats),
        "curvature": found.parabola.curvature if counts else None,
        "problem": found.parabola.problem,
    }


def _prediction_json(found: Prediction) -> dict[str, object]:
    return {
        "budget_flops": found.budget_flops,
        "factor": found.factor,
        "optimal_parameters": asdict(found.optimal_parameters),
        "loss": asdict(found.loss_nats),
    }


def _or_none(estimate: Estimate | None) -> dict[str, object] | None:
    return None if estimate is None else asdict(estimate)
