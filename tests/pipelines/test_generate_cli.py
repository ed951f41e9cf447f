"""What a person meets who wants texts of a checkpoint."""

import json

import pytest
from typer.testing import CliRunner

from model.tokenizer import Tokenizer
from pipelines.cli import app

runner = CliRunner()


def asked(runs, *words):
    return runner.invoke(app, ["generate", "--new", "9", *words, "--runs", str(runs)])


def test_the_command_shows_an_example_of_itself():
    done = runner.invoke(app, ["generate", "--help"])
    assert "Example: clearstory generate" in " ".join(done.stdout.split())


def test_texts_written_together_are_those_written_alone(explained_runs):
    together = json.loads(
        asked(explained_runs, "the rain", "some bread was there", "--json").stdout
    )
    alone = json.loads(asked(explained_runs, "some bread was there", "--json").stdout)
    assert together["n_texts"] == 2
    assert together["generations"][1]["text"] == alone["generations"][0]["text"]
    assert together["tokens_per_pass"] == 1.0


def test_a_low_threshold_writes_several_tokens_a_pass(explained_runs):
    found = json.loads(asked(explained_runs, "the rain", "--threshold", "0.01", "--json").stdout)
    assert found["tokens_per_pass"] > 1.0


def test_a_marker_is_filled_where_it_stands(explained_runs):
    words = ("the rain ___ and more", "--blank", "___", "--blank-tokens", "2", "--new", "0")
    found = json.loads(asked(explained_runs, *words, "--json").stdout)
    (text,), (blank,) = (
        [each["text"] for each in found["generations"]], found["generations"][0]["blanks"],
    )  # fmt: skip
    assert text.startswith("the rain")
    assert text.endswith("and more")
    assert blank in text


def test_a_prompt_of_ids_is_the_prompt_of_their_text(explained_runs):
    tokenizer = Tokenizer(explained_runs / "store" / "checkpoint" / "tokenizer.json")
    ids = [tokenizer.specials.bos_id, *tokenizer.encode("the rain")]
    by_ids = json.loads(asked(explained_runs, " ".join(map(str, ids)), "--ids", "--json").stdout)
    by_text = json.loads(asked(explained_runs, "the rain", "--json").stdout)
    assert by_ids["generations"] == by_text["generations"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("",), "the prompt is empty"),
        (("the rain", "--new", "0"), "ask for at least 1"),
        (("the rain", "--new", "900"), "reads 64 at most"),
        (("the rain", "--threshold", "7"), "threshold is 7.0"),
        (("the rain", "--blank", "___"), "has no blank '___'"),
    ],
)
def test_bad_input_ends_in_its_own_sentence(explained_runs, words, said):
    done = asked(explained_runs, *words)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
