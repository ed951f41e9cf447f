"""The study's DAGs as KFP sees them, and its commands as a person types them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from kfp import dsl, local
from kfp.dsl.types.type_utils import InconsistentTypeException
from typer.testing import CliRunner

from components import contracts, records, tracking
from components.study.component import analyse, draw
from components.study.config import AnalyseConfig, CollectConfig, DrawConfig, PairConfig
from pipelines import compile as compiler
from pipelines import study
from pipelines.cli import app
from tests.components.study.simulated import answer_all, write_library
from tests.pipelines.conftest import settings_in

GOLDEN = Path(__file__).parent.parent / "golden" / "study.txt"
runner = CliRunner()


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run that wrote what a study reads, and nothing else."""
    written = write_library(tmp_path / "artifacts")
    found = {
        contracts.CONCEPTS: written.concepts, contracts.LIFTED_WORDS: written.lifted,
        contracts.TOKENS: written.tokens,
    }  # fmt: skip
    monkeypatch.setattr("pipelines.study_cli.chosen_run", lambda runs, run_id: tmp_path)
    monkeypatch.setattr("pipelines.study_cli.RunFolder", lambda folder: FakeRun(found))
    monkeypatch.chdir(tmp_path)
    return tmp_path


class FakeRun:
    def __init__(self, found):
        self.found = found

    def artifact(self, contract):
        return self.found[contract]


def typed(command, code=0):
    done = runner.invoke(app, ["study", *command.split()])
    assert done.exit_code == code, done.output
    return done.stderr if code else done.stdout


def test_every_edge_is_where_the_golden_file_says(tmp_path):
    lines = []
    for name, dag in study.every().items():
        compiler.write_ir(dag, tmp_path / f"{name}.yaml")
        lines += [f"{name}:", *compiler.outline(tmp_path / f"{name}.yaml")]
    assert lines == GOLDEN.read_text().splitlines()


def test_questionnaires_cannot_be_analysed_as_if_they_were_answers():
    with pytest.raises(InconsistentTypeException, match=r"system\.Study@1\.0\.0"):

        @dsl.pipeline(name="miswired")
        def miswired(given: str) -> None:
            artifact = study._given(given)
            drawn = draw(
                concepts=artifact, lifted=artifact, tokens=artifact, config="{}", settings="{}"
            )
            analyse(named=drawn.outputs["study"], rated=artifact, config="{}", settings="{}")


def test_a_study_from_words_to_figures_by_its_commands(run):
    design = "--raters 4 --ratings 3"
    text = typed(f"draw --out one --concepts 6 --words 4 {design}")
    assert "6 concepts, 4 questionnaires in one/questionnaires\n1 of 9 concepts were passed" in text
    assert len(list((run / "one" / "questionnaires").iterdir())) == 4
    answer_all(run / "one", run / "back1")
    assert "18 of 18 items answered by 4 of 4 raters" in typed("collect one back1 --out answers1")
    assert "each of 6 concepts" in typed(f"pair one answers1 --out two {design}")
    answer_all(run / "two", run / "back2")
    said = json.loads(typed("collect two back2 --out answers2 --json"))
    assert (said["phase"], said["n_items_answered"]) == (2, 54)
    text = typed("analyse answers1 --out early")
    assert "left out" not in text
    text = typed("analyse answers1 answers2 --out analysis")
    assert "pipeline above human" in text
    assert "n = 18 pairs" in text
    contracts.verify(run / "analysis", contracts.STUDY_ANALYSIS)


def test_a_refused_command_leaves_nothing_behind(run):
    told = typed("draw --out one --concepts 9 --words 4", code=2)
    assert "8 of 9 concepts have 4 readable lifted words" in told
    assert not list(run.glob("one*"))
    (run / "one").mkdir()
    assert "one is there already" in typed("draw --out one", code=2)
    assert "lower ratings_per_concept to 3" in typed("pair one a --out b --raters 4", code=2)


@pytest.mark.parametrize("command", ["draw", "collect", "pair", "analyse"])
def test_help_shows_an_example(command):
    assert f"Example: clearstory study {command}" in " ".join(typed(f"{command} --help").split())


@pytest.mark.slow
def test_commands_start_without_the_libraries_of_the_analysis():
    script = (
        "import sys, pipelines.cli\n"
        "print([m for m in ('statsmodels', 'pymc', 'torch', 'scipy', 'kfp') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Task .* have no effect in the current local")
def test_the_pipelines_make_a_study_on_this_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    written = write_library(tmp_path / "artifacts")
    local.init(local.SubprocessRunner(use_venv=False), pipeline_root=str(tmp_path / "kfp"))

    def body(folder):
        path = tmp_path / f"{len(list(tmp_path.glob('*.body')))}.body"
        manifest = contracts.manifest_of(folder).model_copy(update={"location": str(folder)})
        path.write_text(manifest.model_dump_json())
        return str(path)

    def written_by(dag, **inputs):
        """Where the outputs of a DAG lie, by task: each is a run of its own."""
        settings = settings_in(tmp_path, "study")
        tracking.PipelineRun(settings).begin({}, {})
        dag(**inputs, settings=settings.model_dump_json())
        return {
            stage.task: Path(manifest.location)
            for stage in records.read_stages(settings.run_folder)
            for manifest in stage.outputs.values()
        }

    def returned(folder, name):
        return CollectConfig.of(answer_all(folder, tmp_path / name)).model_dump_json()

    design = {"n_raters": 4, "ratings_per_concept": 3}
    concepts = body(written.concepts)
    first = written_by(
        study.drawing(DrawConfig(n_concepts=6, n_words=4, **design)),
        concepts=concepts, lifted=body(written.lifted), tokens=body(written.tokens),
    )  # fmt: skip
    second = written_by(
        study.pairing(PairConfig(**design)),
        study=body(first["draw"]), concepts=concepts, returned=returned(first["draw"], "back1"),
    )  # fmt: skip
    third = written_by(
        study.analysing(AnalyseConfig()),
        paired=body(second["pair"]), named=body(second["collect"]),
        returned=returned(second["pair"], "back2"),
    )  # fmt: skip
    contracts.verify(third["analyse"], contracts.STUDY_ANALYSIS)
