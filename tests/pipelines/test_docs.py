"""Documents that speak of the code are true of it."""

import re
import shlex
import sys
from pathlib import Path

from typer.testing import CliRunner

from components.run_folder import RunFolder
from pipelines.cli import app
from tests.pipelines import small_run

DOCS = Path(__file__).parents[2] / "docs"


def test_the_walk_of_one_document_is_true_of_a_run(walk):
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "walk.md").read_text(), re.DOTALL)
    assert len(blocks) > 8
    names = {"run": RunFolder(walk.folder)}
    for block in blocks:
        exec(compile(block, "walk.md", "exec"), names)


def test_the_contracts_table_is_the_one_of_the_code():
    sys.path.insert(0, str(DOCS))
    import contracts_table

    page = (DOCS / "architecture.md").read_text()
    assert contracts_table.with_table(page) == page


def test_the_tables_of_recipes_are_those_of_the_code():
    sys.path.insert(0, str(DOCS))
    import recipes_table

    page = (DOCS / "recipes.md").read_text()
    assert recipes_table.with_tables(page) == page


def executed(page, name):
    """Run the blocks of a page in turn; returns every command line that was run."""
    done = []
    for language, block in re.findall(r"```(console|python)\n(.*?)```", page, re.DOTALL):
        if language == "python":
            exec(compile(block, name, "exec"), {})
            continue
        for line in block.splitlines():
            program, *words = shlex.split(line)
            assert program == "clearstory"
            result = CliRunner().invoke(app, words)
            assert result.exit_code == 0, (line, result.stdout, result.stderr)
            done.append(words)
    return done


def test_the_commands_about_libraries_run_as_they_are_shown(tmp_path, monkeypatch):
    page = (DOCS / "concepts.md").read_text()
    for name in sorted(set(re.findall(r"demo-[\w-]+", page))):
        small_run.write(tmp_path / "runs", name, started=name)
    monkeypatch.chdir(tmp_path)
    done = executed(page, "concepts.md")
    assert {"search", "show", "diff", "export"} <= {words[1] for words in done}


def test_the_commands_that_explain_and_steer_run_as_they_are_shown(
    explained_runs, tmp_path, monkeypatch
):
    (tmp_path / "runs").symlink_to(explained_runs)
    monkeypatch.chdir(tmp_path)
    done = executed((DOCS / "explain.md").read_text(), "explain.md")
    assert {"explain", "steer"} == {words[0] for words in done}
    assert (tmp_path / "otherwise.html").stat().st_size > 5_000
