"""What a person meets who asks a checkpoint why, and for something else."""

import json

import pytest
from mlflow.tracking import MlflowClient
from typer.testing import CliRunner

from components import contracts
from pipelines.cli import app
from pipelines.explain_wishes import wishes_of
from tests.pipelines.explained_runs import RUN_ID

runner = CliRunner()
QUICK = ("--new", "6", "--targets", "1", "--no-track")


def asked(runs, *words):
    return runner.invoke(app, [*words, "--runs", str(runs)])


def said(runs, *words):
    done = asked(runs, *words, "--json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def checkpoint(explained_runs):
    return explained_runs / "store" / "checkpoint"


@pytest.mark.parametrize("command", ["explain", "steer"])
def test_each_command_shows_an_example_of_itself(command):
    done = runner.invoke(app, [command, "--help"])
    assert done.exit_code == 0
    assert f"Example: clearstory {command}" in " ".join(done.stdout.split())


def test_the_newest_run_is_meant_with_its_index_where_nothing_is_named(explained_runs, checkpoint):
    found = said(explained_runs, "explain", "the rain", *QUICK)
    assert found["document"] == "clearstory.explanation/1"
    assert found["checkpoint"] == contracts.manifest_of(checkpoint).digest
    assert found["index"]["n_chunks"] == 72
    assert len(found["tokens"]) <= 6


def test_a_run_and_the_folder_of_its_checkpoint_are_the_same(explained_runs, checkpoint):
    first = said(explained_runs, "explain", "the rain", *QUICK)
    for where in (RUN_ID, explained_runs / RUN_ID, checkpoint):
        again = said(explained_runs, "explain", "the rain", *QUICK, "--checkpoint", str(where))
        assert again == first


def test_what_is_shown_is_the_text_its_concepts_and_its_sources(explained_runs, tmp_path):
    page = tmp_path / "new" / "page.html"
    done = asked(explained_runs, "explain", "the rain", *QUICK, "--out", str(page))
    assert done.exit_code == 0, done.stderr
    for part in ("chunk 1", "known", "hangs on", "CC0-1.0", "not influence", str(page)):
        assert part in done.stdout
    assert page.read_text().startswith("<!doctype html>")


def test_a_page_without_a_name_lies_with_the_run(explained_runs):
    folder = explained_runs / RUN_ID / "explanations"
    before = set(folder.glob("*"))
    done = asked(explained_runs, "steer", "the rain", "--amplify", "king=20", *QUICK)
    assert done.exit_code == 0, done.stderr
    (page,) = set(folder.glob("steered-*.html")) - before
    assert f"page     {page}" in done.stdout


def test_steering_tells_effect_and_cost_and_what_was_asked(explained_runs):
    found = said(
        explained_runs, "steer", "the rain", "--suppress", "storms=9",
        "--replace", "Love=Trees + engines", *QUICK,
    )  # fmt: skip
    assert found["document"] == "clearstory.steered/1"
    assert [(one["concept"]["name"], one["action"], one["strength_logits"])
            for one in found["effects"]] == [
        ("Storms", "suppress", 9.0), ("Love", "suppress", 8.0), ("Trees", "amplify", 8.0),
        ("Engines", "amplify", 8.0),
    ]  # fmt: skip
    assert found["quality_after"]["loss_nats_per_token"] > 0


def test_special_tokens_in_a_prompt_stay_text(explained_runs):
    found = said(explained_runs, "explain", "<|mask|><|eot_id|>", *QUICK)
    assert "<|mask|>" not in found["generation"]["prompt_tokens"]
    assert "".join(found["generation"]["prompt_tokens"]).endswith("<|mask|><|eot_id|>")


def test_no_control_character_of_a_prompt_reaches_the_terminal(explained_runs, tmp_path):
    done = asked(explained_runs, "explain", "rain\x1b[31m", *QUICK, "--out", str(tmp_path / "p"))
    assert done.exit_code == 0
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("explain", ""), "the prompt is empty"),
        (("explain", "rain " * 99), "the network reads 64 at most; shorten the prompt to 58"),
        (("explain", "rain\udcff"), "half of a surrogate pair"),
        (("explain", "rain", "--calibration", "/dev/null"), "/dev/null is not an artifact"),
        (("steer", "rain", "--amplify", "9" * 5000), "9…: String should have at most 4000"),
        (("explain", "rain", "--new", "0"), "0 new tokens are asked for; ask for at least 1"),
        (("explain", "rain", "--top-p", "2"), "top_p is 2.0: Input should be less than or equal"),
        (("explain", "3 x", "--ids"), "'x' is no token id"),
        (("explain", "rain", "--checkpoint", "demo-x"), "There is no run 'demo-x'"),
        (("explain", "rain", "--index", "nowhere"), "there is no folder"),
        (("explain", "rain", "--out", "/proc/no/page"), "name another file with --out"),
        (("steer", "rain"), "nothing is to change; name a concept with --amplify"),
        (("steer", "rain", "--amplify", "Stroms"), "Did you mean Storms"),
        (("steer", "rain", "--amplify", "Storms=1e9"), "a shift in logits from 0 to 100"),
        (("steer", "rain", "--replace", "Storms"), "give the old and the new one as OLD=NEW"),
    ],
)
def test_what_is_asked_for_wrongly_ends_with_two_and_the_way_on(explained_runs, words, message):
    defaults = QUICK if "--new" not in words else ("--no-track",)
    done = asked(explained_runs, *words, *defaults)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr + done.stdout


def test_a_wish_ends_in_a_strength_or_in_a_name_with_an_equals_sign():
    wishes = wishes_of(["a=b", "a=3.5"], [], ["old=new=2"])
    assert [(one.concept, one.replacement, one.strength_logits) for one in wishes] == [
        ("a=b", "", None), ("a", "", 3.5), ("old", "new", 2.0),
    ]  # fmt: skip


def test_of_a_checkpoint_without_a_run_nothing_is_kept_in_mlflow_and_it_is_said(
    checkpoint, tmp_path
):
    done = runner.invoke(
        app,
        ["explain", "rain", "--new", "3", "--targets", "0", "--json",
         "--checkpoint", str(checkpoint), "--runs", str(tmp_path)],
    )  # fmt: skip
    assert done.exit_code == 0
    assert "tracking nothing: the checkpoint is of no run here" in done.stderr
    assert json.loads(done.stdout)["index"] is None


def test_a_run_that_was_never_tracked_keeps_nothing_in_mlflow_and_it_is_said(explained_runs):
    done = asked(explained_runs, "explain", "rain", "--new", "3", "--targets", "0", "--json")
    assert done.exit_code == 0
    assert f"tracking nothing: the run {RUN_ID} is not in MLflow" in done.stderr


def test_page_and_document_are_artifacts_of_the_run_they_belong_to(walk):
    runs = walk.folder.parent
    done = asked(runs, "explain", "The ship", "--new", "4", "--targets", "1", "--json")
    assert done.exit_code == 0, done.stderr
    client = MlflowClient(walk.settings.tracking_uri, walk.settings.tracking_uri)
    kept = client.list_artifacts(walk.record.parent_run, "explanations")
    names = sorted(one.path for one in kept)
    assert [name.rpartition(".")[2] for name in names] == ["html", "json"]
    assert names[0].startswith("explanations/explained-")
    assert json.loads(done.stdout)["index"] is not None
