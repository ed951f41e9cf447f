"""Debian's descriptions and debtags: parsed as they are written, refused where they are others."""

import gzip
import shutil
import subprocess
from pathlib import Path

import pytest

from components import debian
from components.archives import FetchError

LISTED = """\
Package: airstrike
Description-md5: 0
Description-en: 2d dogfight game
 A dogfight game
 with planes.
 .
 For one or two.

Package: airstrike
Description-en: an older one
 Older.

Package: gimp
Description-en: image editor
 Edits images.
"""

VOCABULARY = """\
Facet: game
Description: Games

Tag: game::arcade
Description: Action and Arcade
 Games of
 skill.

Tag: use::editing
Description: Editing
"""


def made_package(folder: Path) -> Path:
    """A .deb as small as can be."""
    root = folder / "root"
    (root / "usr/share/debtags").mkdir(parents=True)
    (root / "DEBIAN").mkdir()
    (root / "DEBIAN/control").write_text(
        "Package: debtags\nVersion: 1\nArchitecture: all\nMaintainer: m\nDescription: d\n".replace(
            "\\\n", "\n"
        )
    )
    (root / "usr/share/debtags/vocabulary").write_text(VOCABULARY)
    (root / "usr/share/debtags/tags-current.gz").write_bytes(
        gzip.compress(b"airstrike: game::arcade, use::editing\n".replace(b"\\\n", b"\n"))
    )
    package = folder / "debtags.deb"
    subprocess.run(
        ["dpkg-deb", "--build", str(root), str(package)], check=True, capture_output=True
    )
    return package


def test_descriptions_flow_and_the_first_of_a_package_counts(tmp_path):
    (tmp_path / "Translation-en").write_text(LISTED)
    found = debian.descriptions(tmp_path / "Translation-en")
    assert found["airstrike"].title == "2d dogfight game"
    assert found["airstrike"].body == "A dogfight game with planes. For one or two."
    assert list(found) == ["airstrike", "gimp"]


def test_a_file_without_packages_is_refused(tmp_path):
    (tmp_path / "Translation-en").write_text("Key: value\n")
    with pytest.raises(FetchError, match="lists no package"):
        debian.descriptions(tmp_path / "Translation-en")


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="Debian's tool is not here")
def test_tags_and_vocabulary_are_read_from_the_pinned_package_alone(tmp_path, monkeypatch):
    package = made_package(tmp_path)
    with pytest.raises(FetchError, match="is pinned; delete it"):
        debian.debtags(package)
    monkeypatch.setattr(debian, "DEBTAGS_SHA256", debian.sha256(package))
    found = debian.debtags(package)
    assert found.tags == {"airstrike": ("game::arcade", "use::editing")}
    assert found.vocabulary["game::arcade"] == debian.Tag("Action and Arcade", "Games of skill.")
    assert "game" not in found.vocabulary


def test_a_machine_without_apt_is_told_what_to_copy(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FetchError, match=r"Copy debtags_2\.1\.5_all\.deb and Translation-en"):
        debian.fetch(tmp_path)


def test_what_lies_there_is_not_downloaded_again(tmp_path, monkeypatch):
    for tool in ("apt-get", "dpkg-deb"):
        (tmp_path / tool).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / tool).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in (f"debtags_{debian.DEBTAGS_VERSION}_all.deb", "Translation-en"):
        (tmp_path / name).write_text("here")
    assert [path.read_text() for path in debian.fetch(tmp_path)] == ["here", "here"]
    (tmp_path / "Translation-en").unlink()
    with pytest.raises(FetchError, match="apt-get failed"):
        debian.fetch(tmp_path)
