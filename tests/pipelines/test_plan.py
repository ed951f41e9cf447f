"""`clearstory plan`: what a recipe takes, counted before anything runs."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from pipelines import recipes
from pipelines.cli import app
from pipelines.plan import plan

runner = CliRunner()


def planned(*words):
    return runner.invoke(app, ["plan", *words])


def test_the_paper_s_recipe_gives_the_paper_s_numbers():
    counted = plan(recipes.named("steerling_8b"))
    train, midtrain = counted.stages
    assert train.n_parameters == 8_391_778_304
    assert (train.n_steps, midtrain.n_steps) == (286_102, 35_763)
    assert train.cost.flops + midtrain.cost.flops == pytest.approx(7.667e22, rel=1e-3)


def test_a_stage_prints_a_row_for_each_zero_stage():
    shown = planned("steerling_8b", "--zero", "3").stdout
    assert [f"ZeRO {stage}" in shown for stage in (0, 1, 2, 3)] == [True] * 4
    assert "→ train, ZeRO 3" in shown
    assert "does not fit" in shown  # at stage 0, which was not asked for


def test_json_holds_the_same_plan():
    done = planned("demo", "--json")
    found = json.loads(done.stdout)
    counted = plan(recipes.demo())
    assert found["stages"][0]["cost"]["flops"] == counted.stages[0].cost.flops
    assert [row["zero_stage"] for row in found["stages"][1]["memory"]] == [0, 1, 2, 3]
    assert found["device"]["measured"] is True


def test_demo_takes_what_it_was_measured_to_take():
    counted = plan(recipes.demo())
    wall = counted.stages[0].cost.wall_hours
    assert counted.n_devices == 2  # cores
    assert wall.low * 3600 < 435 < wall.high * 3600  # docs/log.md


def test_hours_and_money_by_hand():
    cost = plan(recipes.named("small")).stages[0].cost
    assert cost.device_hours.low == cost.flops / (989e12 * 0.47) / 3600
    assert cost.money.high == cost.device_hours.high * 2.75
    assert cost.wall_hours == cost.device_hours  # one device


def test_more_ranks_compute_as_much_at_a_time_and_end_sooner():
    few, many = (plan(recipes.named("one_b"), ranks=ranks) for ranks in (8, 16))
    assert few.stages[0].micro_batch_tokens == many.stages[0].micro_batch_tokens == 4 * 4_096
    assert many.total.device_hours == few.total.device_hours
    assert many.total.wall_hours.low == few.total.wall_hours.low / 2


def test_total_is_the_stages_and_the_ladder():
    counted = plan(recipes.named("one_b"))
    parts = [*(stage.cost for stage in counted.stages), counted.ladder.cost]
    assert counted.total.flops == pytest.approx(sum(part.flops for part in parts))
    assert counted.ladder.cost.flops == pytest.approx(
        sum(5 * 2 * (budget + 4 * budget) for budget in (1e17, 4e17, 1.6e18, 6.4e18)), rel=0.01
    )


def test_a_plan_that_does_not_fit_ends_with_1_and_the_way_out():
    done = planned("steerling_8b", "--hardware", "a100", "--ranks", "2", "--zero", "1")
    assert done.exit_code == 1
    assert "Try --zero 3" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("demo", "--hardware", "h10"), "no device 'h10'"),
        (("steerling_8b", "--ranks", "100"), "try --ranks 128"),
        (("small", "--zero", "0"), "stage is 0 and dtype is bfloat16"),
        (("demmo",), "no recipe 'demmo'"),
    ],
)
def test_what_cannot_be_planned_ends_with_2_and_the_reason(words, message):
    done = planned(*words)
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.mark.parametrize("name", ["small", "one_b", "steerling_8b"])
def test_a_recipe_for_accelerators_is_refused_here_before_anything_is_made(name, tmp_path):
    done = runner.invoke(app, ["run", name, "--runs", str(tmp_path)])
    assert done.exit_code == 2
    assert f"clearstory plan {name}" in done.stderr
    assert "pipelines.compile lifecycle" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", sorted(recipes.RECIPES))
def test_every_recipe_can_be_planned_and_fits_what_it_is_meant_for(name):
    assert plan(recipes.named(name)).fits


def test_planning_needs_neither_torch_nor_kfp_nor_mlflow():
    script = (
        "import sys; from typer.testing import CliRunner; from pipelines.cli import app;"
        "done = CliRunner().invoke(app, ['plan', 'steerling_8b']);"
        "assert done.exit_code == 0, done.output;"
        "assert not {'torch', 'kfp', 'deepspeed', 'mlflow', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
