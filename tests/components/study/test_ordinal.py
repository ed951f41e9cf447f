"""The cumulative-link model, where its extra is installed; and what happens where it is not."""

import importlib.util
from dataclasses import replace

import numpy as np
import pytest

from components.study import ordinal
from components.study.analysis import analyse
from components.study.config import AnalyseConfig
from components.study.ratings import Pairs
from tests.components.study.simulated import pairs_of, rated


def test_without_the_extra_the_message_names_it_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ordinal.MissingExtraError, match=r"pip install 'clearstory\[ordinal\]'"):
        analyse(tmp_path / "nothing", [], tmp_path, AnalyseConfig(ordinal=True))


def test_rhat_is_one_for_equal_chains_and_large_for_chains_apart():
    draws = np.random.default_rng(0).normal(size=(4, 400))
    assert ordinal.split_rhat(draws) == pytest.approx(1, abs=0.01)
    assert ordinal.split_rhat(draws + np.arange(4)[:, None]) > 1.5


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("pymc") is None, reason="needs the extra `ordinal`")
@pytest.mark.filterwarnings("ignore")
def test_the_planted_odds_ratio_lies_in_the_credible_interval():
    random = np.random.default_rng(0)
    pairs = pairs_of(rated(40, 5, effects={"pipeline": 0.0, "human": 0.0}, seed=0))
    thresholds, effect = np.array([-2.5, -1.0, 0.5, 2.0]), 0.9
    concept_C, rater_G = random.normal(0, 0.8, 40), random.normal(0, 0.4, 5)

    def answers(ratings, shift):
        eta_N = shift + concept_C[ratings.concept_N] + rater_G[ratings.rater_N]
        latent_N = eta_N + random.logistic(size=len(eta_N))
        value_N = 1.0 + (latent_N[:, None] > thresholds[None, :]).sum(axis=1)
        return replace(ratings, value_N=value_N)

    planted = Pairs(answers(pairs.first, effect), answers(pairs.second, 0.0))
    found = ordinal.cumulative_link(planted, draws=500, seed=0)
    ratio, above = found["odds_ratio"], found["posterior_probability"]
    assert ratio.low < np.exp(effect) < ratio.high
    assert ratio.high / ratio.low < 3
    assert above.value > 0.99
    assert "do not trust" not in ratio.note
