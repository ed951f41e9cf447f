"""The table that laws are fitted to: one row per finished run (paper §8.1).

N counts the backbone without embeddings, plus the concept heads where there are any but not the
factorised unknown embeddings. D is training tokens, the loss is held-out nats per token by the
estimator named beside it.
"""

import csv
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from components import contracts
from model.estimators import DiffusionEstimator

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Point:
    """One run: what it spent and what it reached."""

    name: str
    family: str
    seed: int
    budget_flops: float
    flops: float
    n_parameters: float
    n_backbone_parameters: float
    n_tokens: float
    estimator: str
    loss_nats: float
    loss_standard_error_nats: float

    def __post_init__(self) -> None:
        for name in ("budget_flops", "flops", "n_parameters", "n_tokens", "loss_nats"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(
                    f"run {self.name} has {name} {value}; a law needs finite positive numbers. "
                    f"Run this point of the ladder again, or leave it out"
                )


@dataclass(frozen=True)
class Table:
    """Points as columns."""

    flops_N: Floats
    budget_flops_N: Floats
    n_parameters_N: Floats
    n_tokens_N: Floats
    loss_nats_N: Floats

    def __len__(self) -> int:
        return len(self.loss_nats_N)


def table(points: Sequence[Point]) -> Table:
    """Columns of some points."""
    return Table(
        flops_N=np.array([point.flops for point in points]),
        budget_flops_N=np.array([point.budget_flops for point in points]),
        n_parameters_N=np.array([point.n_parameters for point in points]),
        n_tokens_N=np.array([point.n_tokens for point in points]),
        loss_nats_N=np.array([point.loss_nats for point in points]),
    )


def read_point(curve: Path, estimator: DiffusionEstimator) -> Point:
    """The finished run that a Curve artifact describes."""
    contracts.verify(curve, contracts.CURVE)
    run = contracts.json_file(curve, "run.json")
    final = run["final"]
    assert isinstance(final, dict), f"{curve / 'run.json'} has no table of final losses"
    used = estimator if f"nll_nats_per_token_{estimator}" in final else "autoregressive"
    key = f"nll_nats_per_token_{used}"
    if key not in final:
        raise ValueError(
            f"{curve / 'run.json'} has no loss by the estimator {estimator}, only {sorted(final)}; "
            f"choose one of those, or measure the point again"
        )
    return Point(
        name=str(run["name"]),
        family=str(run["family"]),
        seed=int(run["seed"]),  # type: ignore[call-overload]
        budget_flops=_number(run, "budget_flops"),
        flops=_number(run, "flops"),
        n_parameters=_number(run, "n_parameters"),
        n_backbone_parameters=_number(run, "n_backbone_parameters"),
        n_tokens=_number(run, "n_tokens"),
        estimator=used,
        loss_nats=float(final[key]["value"]),
        loss_standard_error_nats=float(final[key]["standard_error"]),
    )


def write_csv(points: Sequence[Point], path: Path) -> None:
    """The points as a table a person can open."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Point)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(point) for point in points)


def _number(run: dict[str, object], name: str) -> float:
    value = run[name]
    assert isinstance(value, int | float), f"{name} is {value!r}, not a number"
    return float(value)
