"""What a person meets who looks into a library at a terminal."""

import json

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from components import contracts
from pipelines.cli import app
from tests.pipelines import small_run

runner = CliRunner()

OLDER = {"Sailing ships": ("sailing ship", "ship under sail"), "Gales": ("gale", "storm")}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    small_run.write(folder, "older", "2026-01-01T00:00:00+00:00", OLDER)
    small_run.write(folder, "newer", "2026-01-02T00:00:00+00:00")
    small_run.write_record(folder, "newest-without", "2026-01-03T00:00:00+00:00", {})
    return folder


def asked(runs, *words):
    return runner.invoke(app, ["concepts", *words, "--runs", str(runs)])


def said(runs, *words):
    done = asked(runs, *words, "--json")
    assert done.exit_code in (0, 1), done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("command", ["search", "show", "diff", "export"])
def test_every_command_shows_an_example_of_itself(command):
    done = runner.invoke(app, ["concepts", command, "--help"])
    assert done.exit_code == 0
    assert f"Example: clearstory concepts {command}" in " ".join(done.stdout.split())


def test_the_newest_run_that_has_a_library_is_meant_where_none_is_named(runs):
    assert said(runs, "search", "whale", "--n", "1")[0]["name"] == "Whales"
    assert "Whales" in asked(runs, "search", "whale").stdout


def test_a_run_a_folder_and_its_rows_are_one_library(runs):
    folder = runs / "store" / "older" / "concepts"
    for where in ("older", runs / "older", folder, folder / contracts.ROWS_FILE):
        assert said(runs, "search", "gale", "--in", str(where))[0]["name"] == "Gales"


def test_finding_nothing_by_words_alone_ends_with_one(runs):
    done = asked(runs, "search", "railway", "--words")
    assert done.exit_code == 1
    assert "no concept of newer has 'railway'" in done.stderr


def test_a_concept_is_shown_with_its_history_and_its_surest_chunks(runs):
    found = said(runs, "show", "storms")
    assert [(each["chunk_id"], each["title"]) for each in found["examples"]] == [
        (2, "Log 2"), (0, "Log 0"),
    ]  # fmt: skip
    assert found["examples"][1]["text"] == small_run.TEXTS[0]
    assert len(found["nearest"]) == 3
    assert found["history"] == []
    (step,) = said(runs, "show", "Whales")["history"]
    assert step["action"] == "merge"


def test_text_of_documents_reaches_the_terminal_as_text(runs):
    shown = asked(runs, "show", "storms").stdout
    assert "\x1b" not in shown
    assert "A storm [31mat sea." in shown
    assert "[bold]They set sail.[/bold]" in shown


def test_a_library_without_a_run_has_no_chunks_to_show(runs):
    folder = runs / "store" / "newer" / "concepts"
    assert said(runs, "show", "1", "--in", str(folder))["examples"] == []


def test_differences_end_with_one_and_none_with_zero(runs):
    done = asked(runs, "diff", "older", "newer")
    assert done.exit_code == 1
    assert "Gales → Storms" in done.stdout
    counts = said(runs, "diff", "older", "newer")["counts"]
    assert counts == {
        "same": 0, "changed": 1, "renamed": 1, "merged": 0, "split": 0, "removed": 0, "added": 2,
    }  # fmt: skip
    assert asked(runs, "diff", "newer", "newer").exit_code == 0


def test_an_export_is_written_once_and_over_a_file_only_by_force(runs, tmp_path):
    out = tmp_path / "c.parquet"
    assert asked(runs, "export", str(out), "--layout", "released").exit_code == 0
    assert pq.read_table(out)["concept_name"].to_pylist()[2] == "Whales"
    again = asked(runs, "export", str(out))
    assert again.exit_code == 2
    assert "exists; give another name, or --force" in again.stderr
    assert asked(runs, "export", str(out), "--force").exit_code == 0
    assert "members" in pq.read_schema(out).names


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("show", "whale"), "Did you mean Whales?"),
        (("search", " "), "nothing to search for"),
        (("search", "x", "--in", "older2"), "There is no run 'older2'"),
        (("search", "x", "--in", "newest-without"), "has no library yet"),
        (("export", "c.xls"), "ends in .xls"),
    ],
)
def test_what_is_asked_for_wrongly_ends_with_two_and_the_way_on(runs, words, message):
    done = asked(runs, *words)
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_folder_that_is_no_library_is_refused_with_what_would_be(runs, tmp_path):
    done = asked(runs, "search", "x", "--in", str(tmp_path))
    assert done.exit_code == 2
    assert "give a run, a folder of Concepts@1.1.0" in done.stderr


def test_an_edited_library_is_refused(runs, tmp_path):
    small_run.write(tmp_path, "edited", "2026-01-01T00:00:00+00:00")
    (tmp_path / "store" / "edited" / "concepts" / "library.json").write_text("{}")
    done = asked(tmp_path, "search", "x")
    assert done.exit_code == 2
    assert "clearstory rerun --from canonicalise" in done.stderr


def test_chunks_labelled_with_another_library_are_not_shown(tmp_path):
    small_run.write(tmp_path, "mixed", "2026-01-01T00:00:00+00:00", labelled_with="f" * 64)
    done = asked(tmp_path, "show", "1")
    assert done.exit_code == 2
    assert "the labels of mixed are of library ffffffffffffffff, its concepts are" in done.stderr
    assert asked(tmp_path, "show", "1", "--examples", "0").exit_code == 0
