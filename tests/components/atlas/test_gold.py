"""Gold sets: debtags are cut as they should be, and what is written can be measured with."""

import json

import pyarrow.parquet as pq
import pytest

from components import debian
from components.atlas import gold, gold_files
from components.debian import Debtags, Description, Tag

LONG = "It flies planes over the sea and back again. " * 4


@pytest.fixture
def packages(monkeypatch, tmp_path):
    """Twenty games, of which one is about editing as well, and what is to be left out."""
    said = {f"plane{row:02d}": Description("a game", LONG) for row in range(20)}
    said |= {name: Description("x", LONG) for name in ("libplane", "plane-dev", "plane-doc")}
    said["short"] = Description("a game", "Too short.")
    tags = dict.fromkeys(said, ("game::arcade", "role::program", "use::TODO"))
    tags["plane00"] = ("game::arcade", "use::editing")
    tags["unlisted"] = ("game::arcade",)
    vocabulary = {"game::arcade": Tag("Action", "Skill."), "use::editing": Tag("Editing", "")}
    monkeypatch.setattr(debian, "descriptions", lambda _: said)
    monkeypatch.setattr(debian, "debtags", lambda _: Debtags(tags, vocabulary))
    (tmp_path / "listed").write_text("as apt lists it")
    return tmp_path / "package", tmp_path / "listed"


def test_only_topical_tags_of_enough_long_descriptions_are_kept(packages):
    found = gold.read_debtags(*packages)
    assert found.doc_ids == [f"plane{row:02d}" for row in range(20)]
    assert found.concepts == [("Action (game: arcade)", "Skill.")]
    assert found.labels == [["Action (game: arcade)"]] * 20
    assert found.texts[0] == f"a game\n{LONG}"
    assert found.facts["descriptions_are_the_pinned_ones"] is False


def test_what_is_written_is_a_gold_set_and_the_same_bytes_again(packages, tmp_path):
    found = gold.first(gold.read_debtags(*packages), 7)
    for folder in ("one", "other"):
        gold.write(found, tmp_path / folder)
    one = tmp_path / "one"
    for name in ("gold.parquet", "concepts.parquet", "documents.parquet", "gold.json"):
        assert (one / name).read_bytes() == (tmp_path / "other" / name).read_bytes()
    read = gold_files.read(*(one / f"{n}.parquet" for n in ("concepts", "documents", "gold")))
    assert read.labels_NK.toarray().tolist() == [[1.0]] * 7
    assert json.loads((one / "gold.json").read_text())["n_texts"] == 7
    assert pq.read_schema(one / "gold.parquet").names == ["doc_id", "text", "labels"]


def test_more_texts_than_there_are_is_refused(packages):
    with pytest.raises(ValueError, match="21 texts are asked for, but there are 20"):
        gold.first(gold.read_debtags(*packages), 21)
