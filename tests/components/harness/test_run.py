"""The harness runs tasks from local files on our checkpoints, by itself (method §7.2)."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import datasets
import pytest
from lm_eval.api.instance import Instance

from components.examinee import Examinee, Question
from components.harness.adaptor import HarnessLM
from components.harness.config import HarnessConfig
from components.harness.tasks import REQUESTS_FILE, RESULTS_FILE, TaskError, run
from model.conditional_config import ConditionalConfig
from tests.components import reader

TASKS = Path(__file__).parent / "tasks"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return Path(shutil.copytree(TASKS, tmp_path / "tasks"))


def config(folder: Path | None, *names: str, batch: int = 32) -> HarnessConfig:
    return HarnessConfig(
        folder=folder, names=names, bootstrap_draws=20, likelihood=ConditionalConfig(rows=batch)
    )


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_tasks_from_local_files_give_what_the_examinee_says(folder: Path, tmp_path: Path):
    examinee = Examinee(reader.network(), ConditionalConfig())
    results = run(examinee, tmp_path / "out", config(folder))
    assert set(results["tasks"]) == {"animals", "passages", "sums"}
    assert results == json.loads((tmp_path / "out" / RESULTS_FILE).read_text())

    documents, n_right = lines(TASKS / "animals.jsonl"), 0
    for document in documents:
        both = [Question(document["question"], f" {choice}") for choice in document["choices"]]
        nats = [one.nats for one in examinee.likelihoods(both)]
        n_right += nats[document["answer"]] == max(nats)
    animals = results["tasks"]["animals"]
    assert animals["metrics"]["acc"]["value"] == pytest.approx(n_right / len(documents))
    assert animals["metrics"]["acc"]["standard_error"] is not None
    assert animals["n"] == 3

    texts = [str(line["text"]) for line in lines(TASKS / "passages.jsonl")]
    total = sum(one.nats for one in examinee.likelihoods([Question("", text) for text in texts]))
    bits = -total / math.log(2) / sum(len(text.encode()) for text in texts)
    assert results["tasks"]["passages"]["metrics"]["bits_per_byte"]["value"] == pytest.approx(bits)

    assert len(lines(tmp_path / "out" / REQUESTS_FILE)) == 2 * 3 + 2 + 2
    assert results["requests"]["loglikelihood"]["n_contexts_cut_on_the_left"] == 2


@pytest.mark.slow
def test_a_run_is_the_same_whatever_the_batch(folder: Path, tmp_path: Path):
    each = []
    for batch in (1, 7):
        examinee = Examinee(reader.network(), ConditionalConfig(rows=batch))
        run(examinee, tmp_path / "out", config(folder, batch=batch))
        each.append(lines(tmp_path / "out" / REQUESTS_FILE))
    for a, b in zip(*each, strict=True):
        assert a == {key: pytest.approx(value, abs=1e-4) for key, value in b.items()}


@pytest.mark.slow
def test_a_task_that_is_not_in_the_folder_is_named_with_those_that_are(
    folder: Path, tmp_path: Path
):
    examinee = Examinee(reader.network(), ConditionalConfig())
    with pytest.raises(TaskError, match=r"no task plants; it has animals, passages, sums"):
        run(examinee, tmp_path / "out", config(folder, "plants"))
    (folder / "sums.jsonl").unlink()
    with pytest.raises(TaskError, match="documents of sums cannot be had"):
        run(examinee, tmp_path / "out", config(folder, "sums"))


@pytest.mark.slow
def test_a_task_that_would_run_generated_code_here_is_refused(folder: Path, tmp_path: Path):
    with (folder / "sums.yaml").open("a") as file:
        file.write("unsafe_code: true\n")
    examinee = Examinee(reader.network(), ConditionalConfig())
    with pytest.raises(TaskError, match="sums would run generated code in this process"):
        run(examinee, tmp_path / "out", config(folder))


@pytest.mark.slow
def test_a_task_by_name_without_a_hub_says_what_is_needed(folder: Path, tmp_path: Path):
    examinee = Examinee(reader.network(), ConditionalConfig())
    with pytest.raises(TaskError, match=r"documents of piqa cannot be had .* capability` needs no"):
        run(examinee, tmp_path / "out", config(None, "piqa"))


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"num_beams": 4}, "num_beams"), ({"max_gen_toks": 0}, "greater than 0")],
)
def test_a_wish_that_cannot_be_followed_is_an_error(settings: dict[str, int], said: str):
    adaptor = HarnessLM(Examinee(reader.network(), ConditionalConfig()))
    request = Instance("generate_until", {}, ("a", {"until": "b", **settings}), 0, ("sums", 0, 1))
    with pytest.raises(ValueError, match=said):
        adaptor.generate_until([request])


def test_repeats_of_one_request_are_drawn_anew():
    adaptor = HarnessLM(Examinee(reader.network(), ConditionalConfig()))
    settings = {"until": [], "max_gen_toks": 9, "do_sample": True, "temperature": 2.0}
    request = Instance("generate_until", {}, ("A bee", settings), 0, ("sums", 0, 2))
    first, second = adaptor.generate_until([request, request])
    assert first != second
