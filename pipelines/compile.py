"""DAGs as IR YAML, and as one line a task for people.

python -m pipelines.compile lifecycle demo build/lifecycle-demo.yaml
"""

import sys
from pathlib import Path

import yaml
from kfp import compiler
from kfp.dsl.graph_component import GraphComponent

from pipelines.lifecycle import lifecycle
from pipelines.recipes import named

PIPELINES = {"lifecycle": lifecycle}


def compile_pipeline(pipeline: str, recipe: str, target: Path) -> Path:
    """Write the IR of a pipeline for a recipe; KFP's compiler checks every edge's type."""
    if pipeline not in PIPELINES:
        raise ValueError(f"There is no pipeline {pipeline!r}; there are {sorted(PIPELINES)}.")
    target.parent.mkdir(parents=True, exist_ok=True)
    write_ir(PIPELINES[pipeline](named(recipe)), target)
    return target


def write_ir(dag: GraphComponent, target: Path) -> None:
    """The IR of a DAG as YAML."""
    compiler.Compiler().compile(dag, package_path=str(target))


def outline(ir: Path) -> list[str]:
    """One line a task: what it reads from whom, and what it writes. Sorted, for golden files."""
    spec = next(yaml.safe_load_all(ir.read_text()))
    lines = []
    for dag in [spec["root"], *spec["components"].values()]:
        for name, task in dag.get("dag", {}).get("tasks", {}).items():
            component = spec["components"][task["componentRef"]["name"]]
            lines.append(f"{name:<22} {_reads(task):<60} -> {_writes(component)}".rstrip())
    return sorted(lines)


def edges(ir: Path) -> dict[str, set[str]]:
    """Tasks by the tasks they read from."""
    spec = next(yaml.safe_load_all(ir.read_text()))
    tasks = spec["root"]["dag"]["tasks"]
    return {name: set(task.get("dependentTasks", [])) for name, task in tasks.items()}


def _reads(task: dict[str, dict[str, dict[str, dict[str, dict[str, str]]]]]) -> str:
    artifacts = task.get("inputs", {}).get("artifacts", {})
    found = []
    for name, source in sorted(artifacts.items()):
        producer = source.get("taskOutputArtifact", {}).get("producerTask", "the DAG's input")
        found.append(f"{name}<-{producer}")
    return " ".join(found) or "-"


def _writes(component: dict[str, dict[str, dict[str, dict[str, dict[str, str]]]]]) -> str:
    artifacts = component.get("outputDefinitions", {}).get("artifacts", {})
    return " ".join(
        f"{name}:{kind['artifactType']['schemaTitle'].removeprefix('system.')}"
        f"@{kind['artifactType']['schemaVersion']}"
        for name, kind in sorted(artifacts.items())
    )


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: python -m pipelines.compile PIPELINE RECIPE [FILE]")
    default = Path("build") / f"{sys.argv[1]}-{sys.argv[2]}.yaml"
    written = compile_pipeline(
        sys.argv[1], sys.argv[2], Path(sys.argv[3]) if len(sys.argv) == 4 else default
    )
    print(f"wrote {written}")
