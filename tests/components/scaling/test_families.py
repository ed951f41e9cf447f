"""What a family's runs say, what they do not, and how far a law is read."""

import dataclasses

import numpy as np
import pytest
from pydantic import ValidationError

from components.scaling.config import FitConfig
from components.scaling.families import fit_family, least_loss
from components.scaling.law import JointLaw
from components.scaling.points import Point, table

LAW = JointLaw(a=150.0, b=700.0, e_nats=1.6, alpha=0.32, beta=0.37, objective=0.0)


def sweep(n_sizes: int, budgets: tuple[float, ...], noise: float) -> list[Point]:
    random = np.random.default_rng(0)
    points = []
    for budget in budgets:
        centre = LAW.optimal_parameters(budget, 6.0)
        for n_parameters in centre * np.geomspace(0.25, 4.2, n_sizes):
            n_tokens = budget / 6.0 / n_parameters
            loss = LAW.predict(np.array([n_parameters]), np.array([n_tokens]))[0]
            points.append(
                Point(
                    name=f"{budget:g}-{n_parameters:g}", family="cdlm", seed=0,
                    budget_flops=budget, flops=budget, n_parameters=n_parameters,
                    n_backbone_parameters=n_parameters, n_tokens=n_tokens,
                    estimator="fixed_rate_0.5",
                    loss_nats=float(loss * np.exp(random.normal(0, noise))),
                    loss_standard_error_nats=0.01,
                )
            )  # fmt: skip
    return points


GOOD = sweep(5, (1e18, 4e18, 1.6e19, 6.4e19), noise=1e-3)
CONFIG = FitConfig(bootstrap_draws=30)


def test_intervals_hold_the_planted_law():
    found = fit_family("cdlm", GOOD, CONFIG)
    planted = {
        "alpha_P": found.exponents["alpha_P"], "alpha": found.joint_estimates["alpha"],
        "beta": found.joint_estimates["beta"], "E": found.joint_estimates["E"],
    }  # fmt: skip
    true = {"alpha_P": LAW.parameters_exponent, "alpha": 0.32, "beta": 0.37, "E": 1.6}
    for name, estimate in planted.items():
        assert estimate.low is not None
        assert estimate.high is not None
        assert estimate.low - 0.05 < true[name] < estimate.high + 0.05, name
        assert estimate.high - estimate.low < 0.3, name


def test_a_good_sweep_has_no_caveat():
    assert fit_family("cdlm", [*GOOD, *sweep(6, (2e18,), 1e-3)], CONFIG).caveats == []


def test_a_small_ladder_says_how_little_it_shows():
    found = fit_family("cdlm", sweep(3, (1e18, 2e18), noise=0.0), CONFIG)
    text = "\n".join(found.caveats)
    assert "2 budgets" in text
    assert "span a factor of 2" in text
    assert "6 runs" in text
    assert "no interval for alpha_P" in text
    assert found.slices[0].optimal_parameters is not None
    assert found.slices[0].optimal_parameters.low is None


def test_a_minimum_at_an_edge_is_named():
    largest_three = sweep(7, (1e18,), noise=0.0)[4:]
    found = fit_family("cdlm", largest_three + sweep(5, (4e18,), 0.0), CONFIG)
    assert any("smaller ones" in caveat for caveat in found.caveats)
    assert not found.exponents


def test_a_law_is_not_read_beyond_its_factor():
    columns = table(GOOD)
    assert least_loss(LAW, columns, 6.4e20, limit_factor=10.0).loss_nats < 3.0
    with pytest.raises(ValueError, match=r"11 × the largest budget"):
        least_loss(LAW, columns, 11 * 6.4e19, limit_factor=10.0)


def test_a_config_that_asks_too_far_is_refused():
    with pytest.raises(ValidationError, match="beyond the limit of 30"):
        FitConfig(extrapolate_factors=(31.0,))


@pytest.mark.parametrize("loss", [float("nan"), 0.0, -1.0])
def test_a_run_without_a_usable_loss_is_refused(loss: float):
    with pytest.raises(ValueError, match="finite positive"):
        dataclasses.replace(GOOD[0], loss_nats=loss)
