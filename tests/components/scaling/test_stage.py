"""From curves to a fit: complete, repeatable, and closed to tables that are no ladder."""

import json
from pathlib import Path

import numpy as np
import pytest

from components import contracts
from components.scaling.config import FitConfig
from components.scaling.law import JointLaw
from components.scaling.stage import fit

LAW = JointLaw(a=40.0, b=90.0, e_nats=1.2, alpha=0.3, beta=0.3, objective=0.0)
CONFIG = FitConfig(bootstrap_draws=10)


def write_curve(
    folder: Path, family: str, budget: float, n_parameters: float, loss: float | None = None
) -> Path:
    folder.mkdir()
    n_tokens = budget / 6 / n_parameters
    predicted = LAW.predict(np.array([n_parameters]), np.array([n_tokens]))[0]
    estimator = "autoregressive" if family == "ar" else "fixed_rate_0.5"
    final = {
        f"nll_nats_per_token_{estimator}": {
            "value": float(predicted) if loss is None else loss,
            "standard_error": 0.01, "n_tokens": 500,
        }
    }  # fmt: skip
    run = {
        "name": folder.name, "family": family, "seed": 0, "n_parameters": n_parameters,
        "n_backbone_parameters": n_parameters, "n_tokens": n_tokens, "flops": budget,
        "budget_flops": budget, "final": final,
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(run))
    row = dict.fromkeys(contracts.CURVE.schema.names)
    row |= {"step": 1, "tokens": 100, "flops": budget, "lr": 0.0, "nll_nats": 2.0}
    contracts.write([row], folder, contracts.CURVE)
    return folder


def ladder(folder: Path) -> list[Path]:
    return [
        write_curve(folder / f"{family}-{budget:g}-{n:g}", family, budget, n)
        for family in ("ar", "cdlm")
        for budget in (1e12, 4e12)
        for n in (1e4, 1e5, 1e6, 1e7)
    ]


def fitted(curves: list[Path], folder: Path) -> Path:
    folder.mkdir()
    fit(curves, folder, CONFIG)
    return folder


def test_both_families_are_fitted_from_their_curves(tmp_path):
    folder = fitted(ladder(tmp_path), tmp_path / "fit")
    contracts.verify(folder, contracts.SCALING_FIT)
    found = contracts.json_file(folder, "fit.json")
    assert found["n_runs"] == 16
    assert found["families"]["ar"]["estimator"] == "autoregressive"
    assert found["families"]["cdlm"]["joint"]["estimates"]["E"]["value"] == pytest.approx(1.2, 0.01)
    assert len(found["families"]["cdlm"]["extrapolation"]) == 2
    assert (folder / "points.csv").read_text().count("\n") == 17


@pytest.mark.slow
def test_the_order_of_curves_changes_no_byte(tmp_path):
    curves = ladder(tmp_path)
    one = fitted(curves, tmp_path / "one")
    two = fitted(curves[::-1], tmp_path / "two")
    assert contracts.manifest_of(one).digest == contracts.manifest_of(two).digest


def test_the_same_point_twice_is_refused(tmp_path):
    curves = [write_curve(tmp_path / name, "cdlm", 1e12, 1e5) for name in ("first", "again")]
    with pytest.raises(ValueError, match=r"runs (again and first|first and again)"):
        fitted(curves, tmp_path / "fit")


def test_a_run_that_diverged_is_refused(tmp_path):
    curve = write_curve(tmp_path / "lost", "cdlm", 1e12, 1e5, loss=float("nan"))
    with pytest.raises(ValueError, match="run lost has loss_nats nan"):
        fitted([curve], tmp_path / "fit")


def test_no_runs_are_refused(tmp_path):
    with pytest.raises(ValueError, match="no runs"):
        fitted([], tmp_path / "fit")
