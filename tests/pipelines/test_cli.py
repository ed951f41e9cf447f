"""What a person at a terminal meets when something is off."""

import socket

import pytest
from typer.testing import CliRunner

from components import savepoints
from components.training_state import Topology, TrainingState
from model.progress import Progress
from pipelines import recipes
from pipelines.cli import app
from pipelines.recipe import Recipe

runner = CliRunner()


def test_an_unknown_recipe_gets_the_nearest_name():
    done = runner.invoke(app, ["run", "demmo"])
    assert done.exit_code == 2
    assert "no recipe 'demmo'" in done.stderr
    assert "demo" in done.stderr


def test_an_unknown_key_gets_the_nearest_name(tmp_path):
    done = runner.invoke(
        app, ["run", "debug", "--set", "training.training.sede=3", "--runs", str(tmp_path)]
    )
    assert done.exit_code == 2
    assert "training.training.sede" in done.stderr
    assert "training.training.seed" in done.stderr


def test_a_value_of_the_wrong_kind_is_refused_with_the_key(tmp_path):
    done = runner.invoke(
        app, ["run", "debug", "--set", "training.training.seed=many", "--runs", str(tmp_path)]
    )
    assert done.exit_code == 2
    assert "training.training.seed" in done.stderr


def test_set_changes_one_number_and_nothing_else():
    before = recipes.debug()
    after = recipes.changed(before, ["training.training.seed=7"])
    assert after.training.training.seed == 7
    assert (
        recipes.changed(after, [f"training.training.seed={before.training.training.seed}"])
        == before
    )


def test_a_larger_library_can_be_set_number_by_number():
    larger = recipes.named("large_library")
    naming = ("namer=medoid", "least_noun=0.55")
    settings = [
        "tagging.n_by_phrases=6000", "library.sweep=[800,1000,1200,1400]",
        "library.min_tag_chunks=3", "library.min_chunks=8", "library.drop_share=0.25",
        *(f"library.naming.{each}" for each in naming),
    ]  # fmt: skip
    changed = recipes.changed(recipes.named("demo"), settings)
    assert (changed.tagging, changed.library) == (larger.tagging, larger.library)
    assert larger.training == changed.training


def test_the_ui_names_a_port_that_is_taken():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = runner.invoke(app, ["ui", "--port", str(port)])
    assert done.exit_code == 2
    assert f"clearstory ui --port {port + 1}" in done.stderr


def test_status_without_runs_says_how_to_begin(tmp_path):
    done = runner.invoke(app, ["status", "--runs", str(tmp_path)])
    assert done.exit_code == 2
    assert "clearstory run demo" in done.stderr


def test_rerun_wants_one_of_from_and_only(tmp_path):
    (tmp_path / "r").mkdir()
    done = runner.invoke(app, ["rerun", "--runs", str(tmp_path)])
    assert done.exit_code == 2


@pytest.mark.parametrize("name", sorted(recipes.RECIPES))
def test_a_recipe_survives_its_wire_format(name):
    recipe = recipes.named(name)
    assert Recipe.model_validate_json(recipe.model_dump_json()) == recipe


def test_an_annealed_recipe_goes_on_from_a_kept_savepoint_and_only_decays(tmp_path):
    recipe = recipes.debug()
    kept = kept_savepoint(tmp_path, step=20)
    training = recipes.annealed(recipe, kept, n_steps=10).training.training
    assert (training.n_steps, training.continue_from) == (30, str(kept))
    assert training.optim.decay == pytest.approx(10 / 30)
    with pytest.raises(ValueError, match="anneal from a later one"):
        recipes.annealed(recipe, kept_savepoint(tmp_path, step=0), n_steps=5)


def test_annealing_from_nothing_names_the_savepoints_there_are(tmp_path):
    kept = kept_savepoint(tmp_path, step=20)
    wrong = kept.with_name("step-000000030-none")
    done = runner.invoke(app, ["anneal", str(wrong), "--steps", "5", "--recipe", "debug"])
    assert done.exit_code == 2
    assert f"which is no savepoint: it has no manifest.json. There are ['{kept.name}']" in (
        done.stderr
    )


def kept_savepoint(scratch, step):
    """One without tensors."""
    folder = savepoints.attempt(scratch, step, permanent=True)
    savepoints.begin(folder)
    state = TrainingState(
        standing=Progress(step=step).standing(), tokens=0, alpha_known=1.0, alpha_unknown=1.0,
        loader={}, topology=Topology(ranks=1, zero_stage=1, micro_batches=1), computes="",
    )  # fmt: skip
    return savepoints.commit(folder, state, {}).folder
