"""What is kept is there whole, once, and under a name that can reach nothing else."""

from contextlib import closing
from pathlib import Path

import pytest

from components.serving.keeping import ANSWER, PAGE, Shelf

FILES = {ANSWER: b'{"text": "rain"}', PAGE: b"<!doctype html>"}


def test_answer_is_found_again_by_the_next_server(tmp_path: Path) -> None:
    with closing(Shelf(tmp_path / "made" / "kept")) as shelf:
        name = shelf.keep(FILES)
        assert shelf.keep(FILES) == name
    with closing(Shelf(tmp_path / "made" / "kept")) as again:
        assert {file: again.read(name, file) for file in FILES} == FILES


def test_interrupted_writing_leaves_nothing_and_is_swept_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    with closing(Shelf(tmp_path)) as shelf, monkeypatch.context() as patched:
        patched.setattr(Path, "rename", dies)
        with pytest.raises(KeyboardInterrupt):
            shelf.keep(FILES)
    assert [path for path in tmp_path.iterdir() if not path.name.startswith(".")] == []
    assert len(list(tmp_path.glob(".partial-*"))) == 1
    with closing(Shelf(tmp_path)):
        assert list(tmp_path.glob(".partial-*")) == []


def test_no_name_reaches_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / ANSWER).write_text("secret")
    with closing(Shelf(tmp_path / "kept")) as shelf:
        name = shelf.keep(FILES)
        for bad in ("../secret", "secret", "..", f"{name}/../{name}", name[:-1], f"{name}\n", ""):
            assert shelf.read(bad, ANSWER) is None, bad
        assert shelf.read(name, "../.lock") is None


def test_two_servers_do_not_share_a_folder(tmp_path: Path) -> None:
    with closing(Shelf(tmp_path)), pytest.raises(ValueError, match="another server keeps"):
        Shelf(tmp_path)
    Shelf(tmp_path).close()


def test_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"cannot be kept in .*--keep"):
        Shelf(tmp_path / "file" / "kept")
