"""Steering moves what it should, costs what is reported, and does nothing at strength 0."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from components import contracts, steering_calibration
from components.library import KnownConcept
from components.steering.config import ResponseConfig, SafetyConfig, SteerConfig
from components.steering.stage import steer
from components.steering.words import WordJudge
from model.sampling_config import SamplingConfig
from model.steering_config import InjectionConfig
from tests.components.explained_run import Run, write_annotator, write_run

CONFIG = SteerConfig(
    n_concepts=5, strengths=(0.0, 9.0, 30.0), suppressions=(9.0, 25.0), strengths_before=(30.0,),
    n_neutral=1, n_about=2,
    prompt_tokens=6, asking_tokens=4, min_words=3, dtype="float32", bootstrap_draws=50,
    amplify=InjectionConfig(after=0.25, layers="onward"),
    suppress=InjectionConfig(after=0.5, layers="onward"),
    safety=SafetyConfig(about="root leaf", n_members=2, n_prompts=8, strength=9.0),
    response=ResponseConfig(n_targets=4, n_concepts=2, strength=30.0),
    sampling=SamplingConfig(n_new=9, temperature=0.8),
)  # fmt: skip
KEYS = ("concept_id", "prompt_id")
Rows = list[dict[str, object]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_run(tmp_path_factory.mktemp("run"))


def steered(run: Run, folder: Path, config: SteerConfig = CONFIG, **others: Path) -> Path:
    inputs = {
        "checkpoint": run.checkpoint, "pretrained": run.checkpoint, "annotator": run.annotator,
        "lifted": run.lifted, "tokens": run.tokens, **others,
    }  # fmt: skip
    for name in ("steering", "calibration"):
        (folder / name).mkdir(parents=True)
    steer(**inputs, steering=folder / "steering", calibration=folder / "calibration", config=config)
    return folder / "steering"


@pytest.fixture(scope="module")
def report(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return steered(run, tmp_path_factory.mktemp("out"))


@pytest.fixture(scope="module")
def summary(report: Path) -> dict[str, Any]:
    return dict(json.loads((report / "summary.json").read_text()))


def rows_of(report: Path, arm: str, strength: float, *, trained: bool = True) -> Rows:
    rows = contracts.read(report, contracts.STEERING_REPORT).to_pylist()
    return [
        row for row in rows
        if (row["arm"], row["strength"], row["steering_trained"]) == (arm, strength, trained)
    ]  # fmt: skip


def entry(summary: dict[str, Any], arm: str, strength: float, prompts: str) -> dict[str, Any]:
    (found,) = [
        one for one in summary["arms"] if one["steering_trained"]
        and (one["arm"], one["strength"], one["prompts"]) == (arm, strength, prompts)
    ]  # fmt: skip
    return dict(found)


def test_every_arm_meets_the_prompts_it_is_meant_for(report: Path) -> None:
    wanted = {
        ("none", 0.0): {0, 1, 2}, ("prompting", 0.0): {0}, ("injection", 0.0): {0},
        ("injection", 9.0): {0}, ("injection", 30.0): {0}, ("injection_mask", 0.0): {1},
        ("injection_mask", -9.0): {1, 2}, ("injection_mask", -25.0): {1, 2},
    }  # fmt: skip
    for (arm, strength), prompt_ids in wanted.items():
        rows = rows_of(report, arm, strength)
        assert {row["prompt_id"] for row in rows} == prompt_ids
        assert len(rows) == 5 * len(prompt_ids)
    assert len(rows_of(report, "injection", 30.0, trained=False)) == 5
    assert contracts.manifest_of(report).rows == 15 + 4 * 5 + 5 + 2 * 10 + 2 * 5


def test_strength_zero_is_the_unsteered_text_in_every_arm(
    report: Path, summary: dict[str, Any]
) -> None:
    plain = {tuple(row[key] for key in KEYS): row for row in rows_of(report, "none", 0.0)}
    for arm in ("injection", "injection_mask"):
        for row in rows_of(report, arm, 0.0):
            assert {**row, "arm": "none"} == pytest.approx(
                plain[tuple(row[key] for key in KEYS)], nan_ok=True
            )
    assert summary["n_strength_zero_equal_to_unsteered"] == 2 * 5


def test_amplifying_raises_the_concept_in_the_text(
    summary: dict[str, Any],
) -> None:
    over = {
        (one["strength"], one["over"]): one
        for one in summary["comparisons"]
        if one["measure"] == "concept_score" and one["arm"] == "injection"
    }
    assert over[9.0, "none"]["low"] > 0
    assert over[9.0, "prompting"]["low"] > 0


def test_suppressing_lowers_the_concept_where_it_was(summary: dict[str, Any]) -> None:
    change = entry(summary, "injection_mask", -25.0, "about")["concept_score_change"]
    assert change["value"] < 0


def test_the_same_network_before_and_after_differs_in_nothing(summary: dict[str, Any]) -> None:
    (found,) = summary["before_after"]
    assert found["change"]["low"] == found["change"]["high"] == pytest.approx(0, abs=1e-6)
    assert found["before"]["value"] == pytest.approx(found["after"]["value"])


def test_costs_and_scores_are_probabilities_shares_and_nats(report: Path) -> None:
    for row in contracts.read(report, contracts.STEERING_REPORT).to_pylist():
        for share in ("concept_score", "word_score", "quality", "harmonic_mean", "repetition"):
            assert 0 <= row[share] <= 1
        assert 0 < row["nll_nats"] < 50


def test_silence_is_told_beside_what_chance_would_give(summary: dict[str, Any]) -> None:
    found = {one["strength"]: one for one in summary["silent"]}
    assert list(found) == ["9", "30", "any"]
    assert set(found["any"]["concept_ids"]) <= set(found["30"]["concept_ids"])
    assert (found["30"]["n_texts"], found["any"]["n_texts"]) == (1, 2)


def test_calibration_promises_a_shift_that_grows_with_the_strength(
    summary: dict[str, Any],
) -> None:
    low, high = summary["logit_shifts"]
    assert 0 < low["top_logits"]["value"] < high["top_logits"]["value"]
    assert -1 <= low["rank_correlation"]["value"] <= 1


def test_a_suppressed_group_is_told_with_its_cost(summary: dict[str, Any]) -> None:
    found = summary["safety"]
    assert found["members"][0]["name"] == "root"
    assert (len(found["members"]), found["n"]) == (2, 8)
    assert found["presence_change"]["value"] < 0
    assert found["nll_nats_change"]["n_groups"] == 8


def test_answers_come_nearer_to_a_target_whose_concepts_are_amplified(
    summary: dict[str, Any],
) -> None:
    found = summary["response"]
    assert found["n"] + found["n_left_out"] == 4
    assert found["presence_change"]["value"] > 0
    assert found["similarity_change"]["value"] > 0
    assert found["quality_unsteered"]["value"] <= 1


def test_the_calibration_is_of_this_checkpoint_and_covers_the_concepts_tried(
    run: Run, report: Path
) -> None:
    digest = contracts.manifest_of(run.checkpoint).digest
    found = steering_calibration.load(report.parent / "calibration", digest)
    rows = contracts.read(report.parent / "calibration", contracts.CALIBRATION).to_pylist()
    tried = {row["concept_id"] for row in rows_of(report, "none", 0.0)}
    assert [row["concept_id"] for row in rows] == sorted(tried)  # type: ignore[type-var]
    assert found.facts.common["amplify"].logits in (9.0, 30.0)
    assert found.facts.common["amplify"].n == 5


def test_concepts_are_spread_over_the_prevalences(report: Path) -> None:
    prevalences = [row["prevalence"] for row in rows_of(report, "none", 0.0)][::3]
    assert prevalences == sorted(prevalences)  # type: ignore[type-var]
    assert (prevalences[0], prevalences[-1]) == pytest.approx((0.1, 0.35))


def test_the_same_inputs_give_the_same_bytes(run: Run, report: Path, tmp_path: Path) -> None:
    again = steered(run, tmp_path)
    for name in ("steering", "calibration"):
        one, other = again.parent / name, report.parent / name
        assert contracts.manifest_of(one).digest == contracts.manifest_of(other).digest


def test_an_annotator_of_another_library_is_refused(run: Run, tmp_path: Path) -> None:
    other = write_annotator(tmp_path / "annotator", library="another")
    with pytest.raises(contracts.ContractError, match="labels with library another"):
        steered(run, tmp_path / "out", annotator=other)


def test_strengths_before_that_have_no_after_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"strengths_before has \[5.0\]"):
        SteerConfig(strengths_before=(5.0,), sampling=SamplingConfig(n_new=3))


def test_words_judge_a_text_by_hand() -> None:
    concept = KnownConcept(0, "rain", "", prevalence=0.2)
    judge = WordJudge(concept, {7: math.log(4.0), 9: math.log(2.0)})
    assert judge.score([1, 2]) == pytest.approx(0.2)
    assert judge.score([7, 7, 7]) == pytest.approx(0.5)  # odds 1 : 4, times 4, once
    assert judge.score([9, 7]) == pytest.approx(2 / 3)


def test_strengths_without_a_control_are_refused() -> None:
    with pytest.raises(ValidationError, match="give 0, the control"):
        SteerConfig(strengths=(4.0, 8.0), sampling=SamplingConfig(n_new=3))


def test_concepts_without_enough_words_are_refused(run: Run, tmp_path: Path) -> None:
    config = CONFIG.model_copy(update={"min_words": 30})
    with pytest.raises(ValueError, match="no concept has 30 lifted words"):
        steered(run, tmp_path, config)
