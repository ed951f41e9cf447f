"""All packaged benchmarks on one checkpoint, as scores with n and interval (method §7.2).

scores.json       as the evaluation stage writes them
questions.jsonl   one line a question: log-probabilities or text, and what became of it
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from components import contracts, fetch
from components.capability import benchmarks, sandbox
from components.capability.benchmarks import WHOLE
from components.capability.choosing import Chosen, choose
from components.capability.config import Benchmark, CapabilityConfig
from components.capability.writing import Written, solve_sums, write_programs
from components.examinee import Examinee
from components.scores import Score, Scorer, Scores
from model.intervals import all_alike

SCORES_FILE, QUESTIONS_FILE = "scores.json", "questions.jsonl"

Row = dict[str, object]


@dataclass(frozen=True)
class Capability:
    """What was measured, and the questions it rests on."""

    scores: Scores
    rows: list[Row]


def measure(examinee: Examinee, config: CapabilityConfig) -> Capability:
    """Every benchmark of the config. NotFetchedError where the cache lacks a package, SandboxError
    where programs are to be run and this machine cannot isolate them: both before any work."""
    fetch.need(benchmarks.packages(config.benchmarks))
    if "humaneval" in config.benchmarks:
        sandbox.check(config.sandbox)
    scorer = Scorer(config.bootstrap_draws, config.likelihood.seed)
    scores: Scores = {}
    rows: list[Row] = []
    for benchmark in config.benchmarks:
        if benchmark in ("gsm8k", "humaneval"):
            written = _written(examinee, benchmark, config)
            scores |= of_written(written, benchmark, scorer)
            rows += [{"benchmark": benchmark, **asdict(one)} for one in written]
        else:
            asked = benchmarks.choices(benchmark)[: config.limit]
            chosen = choose(examinee, asked)
            scores |= of_chosen(chosen, benchmark, scorer)
            rows += [
                {"benchmark": benchmark, **asdict(one), "is_right": one.is_right} for one in chosen
            ]
    return Capability(scores, rows)


def write(found: Capability, out: Path) -> None:
    """Both files, sealed as Scores."""
    out.mkdir(parents=True, exist_ok=True)
    text = {name: score.model_dump() for name, score in found.scores.items()}
    (out / SCORES_FILE).write_text(json.dumps(text, indent=1, allow_nan=False) + "\n")
    write_questions(found, out)
    contracts.seal(out, contracts.SCORES)


def write_questions(found: Capability, out: Path) -> None:
    """The questions alone."""
    with (out / QUESTIONS_FILE).open("w") as file:
        file.writelines(json.dumps(row) + "\n" for row in found.rows)


def of_chosen(chosen: Sequence[Chosen], benchmark: Benchmark, scorer: Scorer) -> Scores:
    """Accuracies beside chance and beside the longest answer; for letters the probability of the
    right one."""
    note = _note(benchmark, len(chosen), sum(one.n_dropped > 0 for one in chosen))
    errors = np.array([error for one in chosen for error in one.standard_error_nats])
    if errors.any():
        spread = float(np.sqrt(np.mean(errors**2)))
        note += f"; log-probabilities estimated, standard error {spread:.2f} nats"
    found = {
        f"{benchmark}_accuracy": _share([one.is_right for one in chosen], scorer, note),
        f"{benchmark}_chance": _exactly(float(np.mean([one.chance for one in chosen])), chosen),
    }
    if benchmark == "mmlu_dev":
        found["mmlu_dev_soft_score"] = scorer.mean(
            np.array([one.probability for one in chosen]), "questions",
            "probability of the right letter among the four", "capability", note,
        )  # fmt: skip
    else:
        right = [one.is_right_per_byte for one in chosen]
        found[f"{benchmark}_accuracy_per_byte"] = _share(right, scorer, note)
        found[f"{benchmark}_longest_answer"] = _share(
            [one.is_longest for one in chosen], scorer,
            "of taking the longest answer, which a score per byte can lean towards",
        )  # fmt: skip
    return found


def of_written(written: Sequence[Written], benchmark: Benchmark, scorer: Scorer) -> Scores:
    """The share of questions that were answered right, at temperature 0."""
    note = _note(benchmark, len(written), sum(one.n_dropped > 0 for one in written))
    if benchmark == "humaneval":
        n_late = sum(one.outcome == "timed out" for one in written)
        name, note = "humaneval_pass_at_1", f"{note}; one greedy program each, {n_late} timed out"
    else:
        name, note = "gsm8k_exact_match", f"{note}; no examples in the prompt, last number counts"
    return {name: _share([one.is_right for one in written], scorer, note)}


def _written(examinee: Examinee, benchmark: Benchmark, config: CapabilityConfig) -> list[Written]:
    if benchmark == "gsm8k":
        return solve_sums(examinee, benchmarks.sums()[: config.limit], config.n_new)
    problems = benchmarks.problems()[: config.limit]
    return write_programs(examinee, problems, config.n_new, config.sandbox)


def _note(benchmark: Benchmark, n: int, n_cut: int) -> str:
    whole = benchmark == "humaneval" and n == benchmarks.N_HUMANEVAL
    kind = "all of" if whole else f"subset, n = {n} of"
    cut = f"; {n_cut} contexts cut on the left" if n_cut else ""
    return f"{kind} {WHOLE[benchmark]}{cut}"


def _share(right: Sequence[bool], scorer: Scorer, note: str) -> Score:
    """A share of questions. Where all went alike a bootstrap has no spread: the exact bound of the
    binomial stands in."""
    unit = "share of questions"
    found = scorer.mean(np.array(right, dtype=np.float64), "questions", unit, "capability", note)
    if 0 < sum(right) < len(right):
        return found
    low, high = all_alike(all_right=all(right), n=len(right))
    return found.model_copy(
        update={"low": low, "high": high, "note": f"{note}; interval: exact binomial"}
    )


def _exactly(value: float, chosen: Sequence[Chosen]) -> Score:
    return Score(
        value=value, n=len(chosen), n_of="questions", low=value, high=value,
        unit="share of questions", condition="capability", note="of guessing",
    )  # fmt: skip
