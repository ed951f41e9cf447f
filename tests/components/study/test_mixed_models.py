"""The mixed model finds the difference and the variances that made the ratings."""

import numpy as np
import pytest

from components.study.mixed_models import MixedFit, figures, mixed
from components.study.power import power
from tests.components.study.simulated import pairs_of, rated

EFFECTS = {"pipeline": 0.47, "human": 0.0}


def test_the_planted_difference_lies_in_the_stated_interval():
    pairs = pairs_of(rated(30, 5, effects=EFFECTS, seed=5, on_the_scale=False))
    found = figures(mixed(pairs, with_names=False), pairs, "difference", "")["difference"]
    assert found.low < 0.47 < found.high
    assert found.n == 150


def test_without_names_the_difference_is_the_paired_mean():
    # Every rater rates both names of every concept: the effects cancel, whatever their sizes.
    pairs = pairs_of(rated(12, 4, effects=EFFECTS, seed=6))
    found = mixed(pairs, with_names=False)
    assert found.effect == pytest.approx(pairs.difference_N.mean(), abs=1e-6)


def test_effects_of_names_widen_the_interval_and_are_found():
    pairs = pairs_of(
        rated(25, 4, effects=EFFECTS, seed=7, name_sd=0.8, error_sd=0.4, on_the_scale=False)
    )
    plain, by_name = mixed(pairs, with_names=False), mixed(pairs, with_names=True)
    assert by_name.standard_error > 1.5 * plain.standard_error
    assert by_name.sds["name"] == pytest.approx(0.8, abs=0.2)
    assert by_name.residual_sd == pytest.approx(0.4, abs=0.05)


def test_what_the_optimiser_warns_of_stands_beside_the_figure():
    pairs = pairs_of(rated(8, 3, effects=EFFECTS, seed=8, rater_sd=0.0, concept_sd=0.0))
    found = mixed(pairs, with_names=False)
    assert max(found.sds.values()) < 0.01
    shown = figures(found, pairs, "difference", "crossed")["difference"]
    assert any("boundary" in remark for remark in found.remarks)
    assert found.remarks[0] in shown.note


def test_power_rises_with_concepts_and_is_the_level_where_nothing_is():
    some = MixedFit(0.47, 0.1, {"rater": 0.3, "concept": 0.5, "name": 0.4}, 0.7, ())
    none = MixedFit(0.0, 0.1, {"rater": 0.3, "concept": 0.5, "name": 0.4}, 0.7, ())
    at = [power(some, n, 4.0, runs=2_000, seed=0) for n in (5, 20, 80)]
    assert at[0].value < at[1].value < at[2].value
    assert at[2].value > 0.99
    null = power(none, 20, 4.0, runs=2_000, seed=0)
    assert null.low < 0.05 < null.high


def test_power_is_that_of_studies_simulated_rating_by_rating():
    fitted = MixedFit(0.4, 0.1, {"rater": 0.3, "concept": 0.5, "name": 0.3}, 0.6, ())
    rejected = 0
    for seed in range(300):
        pairs = pairs_of(rated(12, 3, effects={"pipeline": 0.4, "human": 0.0}, seed=seed,
                               name_sd=0.3, error_sd=0.6, on_the_scale=False))  # fmt: skip
        mean_C = pairs.difference_N.reshape(12, 3).mean(axis=1)
        rejected += abs(mean_C.mean()) / (mean_C.std(ddof=1) / 12**0.5) > 2.201
    assert power(fitted, 12, 3.0, runs=4_000, seed=0).value == pytest.approx(
        rejected / 300, abs=3 * np.sqrt(0.25 / 300)
    )


@pytest.mark.slow
def test_the_interval_of_the_difference_covers_as_often_as_it_says():
    covered = 0
    for seed in range(60):
        pairs = pairs_of(rated(20, 3, effects=EFFECTS, seed=seed, name_sd=0.3, on_the_scale=False))
        found = figures(mixed(pairs, with_names=True), pairs, "d", "")["d"]
        covered += found.low < 0.47 < found.high
    assert covered >= 52
