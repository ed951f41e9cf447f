"""Run tasks of the harness, from local files or by name, and write down what they gave.

results.json     per task and metric: value, standard error, n; versions, seeds, what was estimated
requests.jsonl   one line a request: log-probability, its standard error, samples, tokens cut off

Tasks by name read their documents from the hub. Tasks that run code of the network are refused:
`python -m components.harness capability` runs HumanEval in a sandbox.
"""

import contextlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import datasets
from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager

from components.examinee import Examinee
from components.harness.adaptor import Answer, HarnessLM
from components.harness.config import HarnessConfig

RESULTS_FILE, REQUESTS_FILE = "results.json", "requests.jsonl"

OFFLINE = (
    "`python -m components.harness capability` needs no hub: it reads HellaSwag, TruthfulQA, "
    "GSM8K, HumanEval and MMLU dev from pinned packages, most of them as subsets"
)


class TaskError(ValueError):
    """Tasks that cannot be run. The message says which, why and what can."""


def run(examinee: Examinee, out: Path, config: HarnessConfig) -> dict[str, Any]:
    """Run the tasks and write both files. Returns what `results.json` holds."""
    adaptor = HarnessLM(examinee)
    seed = config.likelihood.seed
    with _beside(config.folder):
        manager = _manager(config)
        found = simple_evaluate(
            model=adaptor,
            tasks=list(_loaded(manager, config).values()),
            limit=config.limit,
            bootstrap_iters=config.bootstrap_draws,
            log_samples=False,
            task_manager=manager,
            random_seed=seed,
            numpy_random_seed=seed,
            torch_random_seed=seed,
            fewshot_random_seed=seed,
        )
    assert found is not None, "the harness gives results to rank 0, and there is no other"
    results = {
        "harness": f"lm-eval {version('lm-eval')}",
        "checkpoint": examinee.network.digest,
        "family": examinee.network.lm.config.family,
        "config": config.model_dump(mode="json"),
        "tasks": {
            name: _task(values, found["n-samples"][name])
            for name, values in sorted(found["results"].items())
        },
        "requests": _summary(adaptor.answers),
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / RESULTS_FILE).write_text(json.dumps(results, indent=1, allow_nan=False) + "\n")
    with (out / REQUESTS_FILE).open("w") as file:
        file.writelines(json.dumps(answer.row()) + "\n" for answer in adaptor.answers)
    return results


@contextlib.contextmanager
def _beside(folder: Path | None) -> Iterator[None]:
    """Task files name their documents by paths beside themselves."""
    if folder is None:
        yield
    else:
        with contextlib.chdir(folder):
            yield


def _manager(config: HarnessConfig) -> TaskManager:
    if config.folder is None:
        manager = TaskManager()
    else:
        manager = TaskManager(include_path=str(Path.cwd()), include_defaults=False)
    known = manager.all_subtasks if not config.names else manager.all_tasks
    unknown = [name for name in config.names if name not in known]
    if unknown or not known:
        where = "the harness" if config.folder is None else str(config.folder)
        some = f"; it has {', '.join(known[:20])}" if config.folder and known else ""
        raise TaskError(
            f"{where} has no task {', '.join(unknown) or 'at all'}{some}. Tasks by name are those "
            f"of lm-eval {version('lm-eval')}; a folder holds one YAML file a task"
        )
    return manager


def _loaded(manager: TaskManager, config: HarnessConfig) -> dict[str, Any]:
    """The tasks with their documents."""
    names = list(config.names or manager.all_subtasks)
    try:
        tasks: dict[str, Any] = manager.load(names)["tasks"]
    except (OSError, datasets.exceptions.DatasetsError) as error:
        what = "the documents are beside the YAML file" if config.folder else "the hub is reached"
        raise TaskError(
            f"the documents of {', '.join(names)} cannot be had ({_first_line(error)}). Check that "
            f"{what}, with HF_HUB_OFFLINE unset if it is a hub. {OFFLINE}"
        ) from error
    unsafe = [name for name, task in tasks.items() if vars(task).get("UNSAFE_CODE")]
    if unsafe:
        raise TaskError(f"{', '.join(unsafe)} would run generated code in this process. {OFFLINE}")
    return tasks


def _task(values: dict[str, Any], counted: dict[str, int]) -> dict[str, object]:
    """Metrics of one task by name; a filter other than the usual one is part of the name."""
    metrics = {}
    for key, value in values.items():
        name, _, used = key.partition(",")
        if not used or name.endswith("_stderr"):
            continue
        error = values.get(f"{name}_stderr,{used}")
        label = name if used == "none" else f"{name} ({used})"
        metrics[label] = {"value": _number(value), "standard_error": _number(error)}
    return {"n": counted["effective"], "n_of_task": counted["original"], "metrics": metrics}


def _number(value: object) -> float | None:
    """A finite number; the harness says N/A where it has no standard error."""
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    return None


@dataclass
class _Sum:
    n: int = 0
    n_cut: int = 0
    n_dropped: int = 0
    n_estimated: int = 0
    square_error: float = 0.0


def _summary(answers: list[Answer]) -> dict[str, dict[str, object]]:
    """By kind of request: how many, how many lost part of their context, how sure they are."""
    sums: dict[str, _Sum] = {}
    for answer in answers:
        one = sums.setdefault(answer.kind, _Sum())
        figures: dict[str, Any] = answer.figures
        one.n += 1
        one.n_cut += figures["n_dropped"] > 0
        one.n_dropped += figures["n_dropped"]
        if figures.get("n_samples"):
            one.n_estimated += 1
            one.square_error += figures["standard_error_nats"] ** 2
    return {
        kind: {
            "n": one.n,
            "n_contexts_cut_on_the_left": one.n_cut,
            "n_context_tokens_cut": one.n_dropped,
            "n_estimated": one.n_estimated,
            "root_mean_square_standard_error_nats": (
                math.sqrt(one.square_error / one.n_estimated) if one.n_estimated else 0.0
            ),
        }
        for kind, one in sums.items()
    }


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
