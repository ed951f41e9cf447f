"""Atlas priced beforehand: every number by hand, its provenance beside it, and soon."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from components.endpoints import RemoteModel
from pipelines import plan_atlas
from pipelines.atlas_rates import ENCODERS, Rate, rates
from pipelines.cli import app
from pipelines.plan_atlas import plan
from pipelines.recipes import named

N = 2e9


def priced(**changes):
    recipe = named("steerling_8b")
    return plan(recipe.model_copy(update=changes), n_chunks=N, hardware="h100", ranks=4)


def stage(counted, name):
    return next(each for each in counted.stages if each.name == name)


def test_encoding_by_hand():
    found = stage(priced(), "embed")
    # 110 pieces · 2 · 0.44e9 parameters a chunk, at 40% of 989e12 FLOP/s; 2.75 USD an hour.
    assert found.device_hours.low == pytest.approx(N * 110 * 0.88e9 / (0.4 * 989e12) / 3600)
    assert found.device_hours.high == pytest.approx(N * 128 * 0.88e9 / (0.1 * 989e12) / 3600)
    assert found.money.low == pytest.approx(found.device_hours.low * 2.75)
    assert found.wall_hours.low == pytest.approx(found.device_hours.low / 4)
    assert found.storage_bytes.low == pytest.approx(N * (1024 * 2 + 12.6))


def test_labelling_by_hand():
    found = stage(priced(), "annotate")
    assert found.core_hours.low == pytest.approx(N * 33_732 / 7.4e7 / 3600)
    # 16 cores share the price of their card.
    assert found.money.low == pytest.approx(found.core_hours.low * 2.75 / 16)
    assert found.wall_hours.low == pytest.approx(found.core_hours.low / 64)
    assert found.storage_bytes.high == pytest.approx(N * 14.7 * 8)


def test_tagging_by_hand():
    found = stage(priced(), "tag")
    assert found.n == 44_100_000
    assert found.prompt_tokens.low == pytest.approx(44_100_000 * 350)
    assert found.money.low == pytest.approx(44.1 * (350 * 0.1 + 90 * 0.3))
    # 64 requests at once, 60 tokens a second each.
    assert found.wall_hours.low == pytest.approx(44_100_000 * 90 / (64 * 60) / 3600)


def test_a_price_of_the_recipe_comes_before_the_rates():
    asked = RemoteModel(
        base_url="http://h/v1", name="m", usd_per_million_prompt_tokens=2.0,
        usd_per_million_completion_tokens=5.0,
    )  # fmt: skip
    tagging = named("steerling_8b").tagging.model_copy(update={"language_model": asked})
    found = stage(priced(tagging=tagging), "tag")
    assert found.money.high == pytest.approx(44.1 * (700 * 2.0 + 200 * 5.0))


def test_clustering_by_hand():
    library = named("steerling_8b").library.model_copy(update={"sweep": (1000,)})
    found = stage(priced(library=library), "canonicalise")
    unique = 44_100_000 * 11.4 * 0.02
    flops = 2 * 1000 * 1024 * (64_000 * 20 + unique)
    assert found.core_hours.low == pytest.approx(flops / 9.8e10 / 3600)


def test_a_static_encoder_takes_cores_and_no_device():
    found = plan(named("demo"), n_chunks=1e6, encoder_name="static:fast", hardware="cpu", ranks=2)
    embedded = stage(found, "embed")
    assert embedded.device_hours.high == 0.0
    assert embedded.core_hours.high == pytest.approx(1e6 / 4000 / 3600)
    assert embedded.money.high == pytest.approx(embedded.core_hours.high * 0.05)
    assert stage(found, "tag").money.high == 0.0
    assert found.n_cores == 2


def test_the_total_is_the_sum_of_the_stages():
    found = priced()
    assert found.money.high == pytest.approx(sum(each.money.high for each in found.stages))
    assert found.wall_hours.low == pytest.approx(sum(each.wall_hours.low for each in found.stages))


def test_every_rate_says_where_it_comes_from_and_no_more_than_that():
    for name, rate in rates():
        assert rate.source.startswith("measured:") == rate.measured, name
    assert all(encoder.source for encoder in ENCODERS.values())


def test_a_rate_that_falls_is_refused():
    with pytest.raises(ValueError, match=r"low is 2.0, above high 1.0"):
        Rate(low=2.0, high=1.0, unit="u", source="s", measured=False)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["atlas"], "try --chunks 11e9"),
        (["atlas", "--chunks", "1e9", "--encoder", "minilm"], "Did you mean minilm-int8"),
        (["demo", "--chunks", "1e9"], "clearstory plan atlas --chunks 11e9"),
    ],
)
def test_what_cannot_be_planned_is_refused_with_a_way_out(words, told):
    found = CliRunner().invoke(app, ["plan", *words])
    assert found.exit_code == 2
    assert told in found.output


def test_the_command_prints_stages_and_rates_and_says_it_all_to_programs():
    words = ["plan", "atlas", "--chunks", "11e9", "--hardware", "h200"]
    shown = CliRunner().invoke(app, words)
    assert "11,000,000,000 chunks" in shown.output
    assert "canonicalise" in shown.output
    assert "label_cells" in shown.output
    said = json.loads(CliRunner().invoke(app, [*words, "--json"]).output)
    assert [each["name"] for each in said["stages"]] == ["tag", "embed", "canonicalise", "annotate"]
    assert said["hardware"] == "h200"


@pytest.mark.slow
def test_planning_imports_nothing_heavy():
    code = (
        "import sys; from pipelines import plan_atlas; "
        "print([name for name in ('torch', 'kfp', 'mlflow', 'pyarrow') if name in sys.modules])"
    )
    root = Path(plan_atlas.__file__).parents[1]
    said = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert said.stdout.strip() == "[]"
