"""Steering moves what it should, costs what is reported, and does nothing at strength 0."""

import json
import math
from pathlib import Path

import pytest
from pydantic import ValidationError

from components import contracts
from components.library import KnownConcept
from components.steering.config import SteerConfig
from components.steering.stage import distinct_2, steer
from components.steering.words import WordJudge
from model.events import Event
from model.sampling_config import SamplingConfig
from tests.components.explained_run import Run, write_run

CONFIG = SteerConfig(
    n_concepts=5, strengths=(0.0, 30.0), n_neutral=1, n_about=2, prompt_tokens=6, min_words=3,
    sampling=SamplingConfig(n_new=9, temperature=0.8),
)  # fmt: skip
KEYS = ("concept_id", "prompt_id")
Rows = list[dict[str, object]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_run(tmp_path_factory.mktemp("run"))


def steered(run: Run, folder: Path) -> Path:
    folder.mkdir()
    steer(run.checkpoint, run.lifted, run.tokens, folder, CONFIG)
    return folder


@pytest.fixture(scope="module")
def report(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return steered(run, tmp_path_factory.mktemp("out") / "steering")


def rows_of(report: Path, arm: str, strength: float) -> Rows:
    rows = contracts.read(report, contracts.STEERING_REPORT).to_pylist()
    return [row for row in rows if row["arm"] == arm and row["strength"] == strength]


def entry(report: Path, arm: str, strength: float, prompts: str) -> dict[str, dict[str, float]]:
    entries = json.loads((report / "summary.json").read_text())["arms"]
    (found,) = [
        one
        for one in entries
        if (one["arm"], one["strength"], one["prompts"]) == (arm, strength, prompts)
    ]
    return dict(found)


def test_every_concept_meets_every_prompt_under_every_arm_and_strength(report: Path) -> None:
    arms = [
        ("none", 0.0), ("injection", 0.0), ("injection", 30.0), ("injection_mask", 0.0),
        ("injection_mask", -30.0),
    ]  # fmt: skip
    trials = {tuple(row[key] for key in KEYS) for row in rows_of(report, "none", 0.0)}
    assert len(trials) == 5 * 3
    for arm, strength in arms:
        rows = rows_of(report, arm, strength)
        assert [tuple(row[key] for key in KEYS) for row in rows] == sorted(trials)
    assert contracts.manifest_of(report).rows == len(arms) * len(trials)


def test_strength_zero_is_the_unsteered_text_in_every_arm(report: Path) -> None:
    plain = rows_of(report, "none", 0.0)
    for arm in ("injection", "injection_mask"):
        for one, other in zip(plain, rows_of(report, arm, 0.0), strict=True):
            assert one == {**other, "arm": "none"}
    summary = json.loads((report / "summary.json").read_text())
    assert summary["n_strength_zero_equal_to_unsteered"] == 3 * 15  # the control counts itself


def test_amplifying_raises_the_concept_in_the_text(report: Path) -> None:
    change = entry(report, "injection", 30.0, "neutral")["concept_score_change"]
    assert change["value"] > 0.1
    assert change["low"] > 0


def test_suppressing_lowers_the_concept_where_it_was(report: Path) -> None:
    assert entry(report, "injection_mask", -30.0, "about")["concept_score_change"]["value"] < 0


def test_costs_and_scores_are_probabilities_shares_and_nats(report: Path) -> None:
    for row in contracts.read(report, contracts.STEERING_REPORT).to_pylist():
        assert 0 <= row["concept_score"] <= 1
        assert 0 <= row["quality"] <= 1
        assert 0 < row["nll_nats"] < 50


def test_concepts_are_spread_over_the_prevalences(report: Path) -> None:
    prevalences = [row["prevalence"] for row in rows_of(report, "none", 0.0)][::3]
    assert prevalences == sorted(prevalences)  # type: ignore[type-var]
    assert (prevalences[0], prevalences[-1]) == pytest.approx((0.1, 0.35))


def test_the_same_inputs_give_the_same_bytes(run: Run, report: Path, tmp_path: Path) -> None:
    again = steered(run, tmp_path / "steering")
    assert contracts.manifest_of(again).digest == contracts.manifest_of(report).digest


def test_progress_is_told_arm_by_arm(run: Run, tmp_path: Path) -> None:
    told: list[Event] = []
    steer(run.checkpoint, run.lifted, run.tokens, tmp_path, CONFIG, told.append)
    assert [(event.step, event.total_steps) for event in told] == [(n, 5) for n in range(1, 6)]


def test_words_judge_a_text_by_hand() -> None:
    concept = KnownConcept(0, "rain", "", prevalence=0.2)
    judge = WordJudge(concept, {7: math.log(4.0), 9: math.log(2.0)})
    assert judge.score([1, 2]) == pytest.approx(0.2)
    assert judge.score([7, 7, 7]) == pytest.approx(0.5)  # odds 1 : 4, times 4, once
    assert judge.score([9, 7]) == pytest.approx(2 / 3)


def test_distinct_pairs_by_hand() -> None:
    assert distinct_2([1, 2, 1, 2, 3]) == 0.75  # 12 21 12 23
    assert distinct_2([1, 1, 1]) == 0.5
    assert distinct_2([4]) == 0.0


def test_strengths_without_a_control_are_refused() -> None:
    with pytest.raises(ValidationError, match="give 0, the control"):
        SteerConfig(strengths=(4.0, 8.0), sampling=SamplingConfig(n_new=3))


def test_concepts_without_enough_words_are_refused(run: Run, tmp_path: Path) -> None:
    config = CONFIG.model_copy(update={"min_words": 30})
    with pytest.raises(ValueError, match="no concept has 30 lifted words"):
        steer(run.checkpoint, run.lifted, run.tokens, tmp_path, config)
