"""Every benchmark as a score that says what it rests on."""

import json
from pathlib import Path

import numpy as np
import pytest

from components import contracts
from components.capability import sandbox
from components.capability.config import CapabilityConfig
from components.capability.measure import QUESTIONS_FILE, measure, of_written, write
from components.capability.writing import Written
from components.examinee import Examinee
from components.scores import Scorer
from model.conditional_config import ConditionalConfig
from tests.components import reader
from tests.components.capability import packaged

CONFIG = CapabilityConfig(n_new=5, likelihood=ConditionalConfig(samples=2))


def test_every_benchmark_says_that_it_is_a_subset_and_of_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    packaged.write(tmp_path / "packages", monkeypatch)
    ran: list[str] = []

    def run(program: str, _: object) -> str:
        ran.append(program)
        return "passed" if "import" in program else "failed"

    monkeypatch.setattr(sandbox, "run", run)
    write(measure(Examinee(reader.network(), CONFIG.likelihood), CONFIG), tmp_path / "out")
    contracts.verify(tmp_path / "out", contracts.SCORES)
    scores = json.loads((tmp_path / "out" / "scores.json").read_text())
    assert set(scores) == {
        "hellaswag_accuracy", "hellaswag_accuracy_per_byte", "hellaswag_chance",
        "hellaswag_longest_answer", "truthfulqa_mc1_longest_answer",
        "truthfulqa_mc1_accuracy", "truthfulqa_mc1_accuracy_per_byte", "truthfulqa_mc1_chance",
        "mmlu_dev_accuracy", "mmlu_dev_soft_score", "mmlu_dev_chance",
        "gsm8k_exact_match", "humaneval_pass_at_1",
    }  # fmt: skip
    for name, score in scores.items():
        assert score["low"] <= score["value"] <= score["high"], name
        of_the_checkpoint = not name.endswith(("_chance", "_longest_answer"))
        assert ("subset, n = " in score["note"]) == of_the_checkpoint, name
    assert scores["hellaswag_longest_answer"]["value"] == 0.5
    assert scores["truthfulqa_mc1_chance"]["value"] == 0.5
    assert len((tmp_path / "out" / QUESTIONS_FILE).read_text().splitlines()) == 2 + 1 + 2 + 1 + 1
    assert ran[-1].startswith("def twice(x):\n")


def test_no_right_answer_still_has_an_interval():
    wrong = [Written(str(n), "", "", is_right=False, n_dropped=0) for n in range(100)]
    score = of_written(wrong, "gsm8k", Scorer(1000, 0))["gsm8k_exact_match"]
    assert (score.value, score.low, score.n) == (0.0, 0.0, 100)
    assert (1 - score.high) ** 100 == pytest.approx(0.025)
    assert "exact binomial" in score.note


def test_humaneval_is_refused_where_it_cannot_be_isolated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    packaged.write(tmp_path, monkeypatch)

    def refuse(*_: object) -> str:
        raise sandbox.SandboxError("generated programs are not run: no network namespace")

    monkeypatch.setattr(sandbox, "run", refuse)
    config = CapabilityConfig(benchmarks=("humaneval",))
    with pytest.raises(sandbox.SandboxError, match="are not run"):
        measure(Examinee(reader.network(), config.likelihood), config)


def test_two_runs_give_the_same_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    packaged.write(tmp_path, monkeypatch)
    config = CapabilityConfig(benchmarks=("hellaswag", "gsm8k"), n_new=3)
    both = [measure(Examinee(reader.network(), config.likelihood), config) for _ in range(2)]
    assert both[0] == both[1]
    assert np.isfinite([score.value for score in both[0].scores.values()]).all()
