"""The DAG as KFP sees it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from google.protobuf import json_format
from kfp import dsl
from kfp.dsl.types.type_utils import InconsistentTypeException
from kfp.pipeline_spec import pipeline_spec_pb2

from components.atlas.component import chunk
from components.corpus.component import ingest
from components.gates.component import check
from pipelines import compile as compiler
from pipelines.again import COMPONENTS
from pipelines.recipes import RECIPES

GOLDEN = Path(__file__).parent.parent / "golden" / "lifecycle-debug.txt"


@pytest.fixture(scope="module")
def ir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("ir") / "lifecycle.yaml"
    return compiler.compile_pipeline("lifecycle", "debug", target)


def test_every_edge_is_where_the_golden_file_says(ir):
    assert compiler.outline(ir) == GOLDEN.read_text().splitlines()


def test_the_spec_is_one_that_kfp_accepts(ir):
    assert parsed(ir).root.dag.tasks


@pytest.mark.slow
@pytest.mark.parametrize("recipe", sorted(RECIPES))
def test_every_recipe_compiles_to_a_spec_that_kfp_accepts(recipe, tmp_path):
    assert parsed(
        compiler.compile_pipeline("lifecycle", recipe, tmp_path / "p.yaml")
    ).root.dag.tasks


def parsed(written):
    """The spec in a file, as KFP's own parser takes it."""
    spec = next(yaml.safe_load_all(written.read_text()))
    return json_format.ParseDict(spec, pipeline_spec_pb2.PipelineSpec())


def test_kfp_never_decides_what_is_cached(ir):
    spec = next(yaml.safe_load_all(ir.read_text()))
    dags = [spec["root"]["dag"], *(c["dag"] for c in spec["components"].values() if "dag" in c)]
    tasks = {name: task for dag in dags for name, task in dag["tasks"].items()}
    stages = {name: task for name, task in tasks.items() if not name.startswith("for-loop")}
    assert len(stages) > 20
    assert [n for n, task in stages.items() if task["cachingOptions"].get("enableCache")] == []


def test_nothing_is_installed_when_a_task_starts(ir):
    assert "pip install" not in ir.read_text()


def test_a_miswired_edge_does_not_compile():
    with pytest.raises(InconsistentTypeException, match=r"system\.Chunks@1\.0\.0"):

        @dsl.pipeline(name="miswired")
        def miswired() -> None:
            corpus = ingest(config="{}", settings="{}")
            checked = check(artifact=corpus.outputs["documents"], config="{}", settings="{}")
            report = checked.outputs["report"]
            cut = chunk(
                documents=corpus.outputs["documents"], checked=report, config="{}", settings="{}"
            )
            chunk(documents=cut.outputs["chunks"], checked=report, config="{}", settings="{}")


def test_a_gate_report_cannot_be_left_out():
    with pytest.raises(TypeError, match="checked"):

        @dsl.pipeline(name="ungated")
        def ungated() -> None:
            corpus = ingest(config="{}", settings="{}")
            chunk(documents=corpus.outputs["documents"], config="{}", settings="{}")


def test_compiling_imports_no_heavy_library(tmp_path):
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from pipelines.compile import compile_pipeline\n"
        f"compile_pipeline('lifecycle', 'debug', Path({str(tmp_path / 'p.yaml')!r}))\n"
        "import json\n"
        "print(json.dumps([m for m in ('torch', 'faiss', 'great_expectations', 'mlflow',"
        " 'deepspeed', 'transformers') if m in sys.modules]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert json.loads(done.stdout.splitlines()[-1]) == []


def test_every_stage_can_be_run_again_alone(ir):
    spec = next(yaml.safe_load_all(ir.read_text()))
    used = {
        name.removeprefix("comp-").rstrip("-0123456789")
        for name in spec["components"]
        if "for-loop" not in name
    }
    assert used == set(COMPONENTS)
