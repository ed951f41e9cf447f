"""Tags become a library: clusters by meaning, a name each, every drop on record."""

from pathlib import Path

import pytest

from components import contracts
from components.atlas.canonicalisation import canonicalise
from components.atlas.library_config import CanonicaliseConfig, NamingConfig
from components.library import open_library
from tests.components.atlas.some_tags import FAMILIES, families, rows, write

Folders = dict[str, Path]


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return write(tmp_path, families(), n_chunks=12)


def config(**changes: object) -> CanonicaliseConfig:
    return CanonicaliseConfig(
        encoder="hashing", sweep=(3,), drop_share=0.0, min_chunks=2, max_prevalence=0.6,
        naming=NamingConfig(namer="medoid"),
    ).model_copy(update=changes)  # fmt: skip


def library(folders: Folders, **changes: object) -> list[dict]:
    canonicalise(folders["tags"], folders["chunks"], folders["concepts"], config(**changes))
    return contracts.read(folders["concepts"], contracts.CONCEPTS).to_pylist()


def test_tags_of_one_meaning_become_one_concept(folders):
    found = library(folders)
    assert sorted(sorted(row["members"]) for row in found) == sorted(
        sorted(members) for members in FAMILIES.values()
    )
    assert [row["concept_id"] for row in found] == [0, 1, 2]
    assert {row["n_chunks"] for row in found} == {4}
    assert [row["prevalence"] for row in found] == pytest.approx([1 / 3] * 3)
    assert all(0.3 < row["coherence"] < 1.0 for row in found)
    assert all(row["taxonomy"] == f"{row['parent']} / {row['name']}" for row in found)
    assert open_library(folders["concepts"]).centroids_KD.shape[0] == 3


def test_the_same_tags_make_the_same_bytes_whatever_order_they_come_in(folders, tmp_path):
    library(folders)
    again = write(tmp_path / "again", families()[::-1], n_chunks=12)
    library(again)
    first, second = (contracts.manifest_of(each["concepts"]) for each in (folders, again))
    assert first.digest == second.digest


def test_rare_concepts_are_dropped_and_nothing_left_is_an_error(folders):
    with pytest.raises(ValueError, match=r"no concept is left of 3 clusters.*min_chunks \(5\)"):
        library(folders, min_chunks=5)


@pytest.mark.parametrize(("kind", "n_left"), [("tone", 1), ("document", 1), ("content", 2)])
def test_the_prevalence_cap_is_for_tone_and_document_concepts(kind, n_left, tmp_path):
    everywhere = rows({chunk: ["sombre tone"] for chunk in range(9)}, kind)
    some = rows({chunk: ["whale hunt"] for chunk in range(2)})
    folders = write(tmp_path, [*everywhere, *some], n_chunks=9)
    found = library(folders, sweep=(2,))
    assert len(found) == n_left
    history = open_library(folders["concepts"]).facts["history"]
    assert (kind == "content") is (history == [])
    if kind != "content":
        assert history[0]["reason"] == f"a {kind} concept on 100.0% of tagged chunks, " + (
            "above the cap 60%"
        )


def test_the_cap_reaches_other_kinds_where_the_config_says_so(folders):
    with pytest.raises(ValueError, match=r"or raise max_prevalence \(0\.2\)"):
        library(folders, max_prevalence=0.2, capped_kinds=("content",))


def test_the_history_says_why_a_cluster_is_gone(folders):
    library(folders, drop_share=0.34)
    facts = open_library(folders["concepts"]).facts
    (step,) = facts["history"]
    assert step["action"] == "drop"
    assert "among the lowest" in step["reason"]
    assert facts["n_concepts"] == 2


def test_cards_that_cannot_be_told_apart_are_merged(folders):
    found = library(folders, sweep=(9,), merge_cosine=0.3, min_chunks=1)
    assert len(found) < 9
    steps = open_library(folders["concepts"]).facts["history"]
    assert {step["action"] for step in steps} == {"merge"}


def test_rare_tags_can_be_left_out_and_are_counted(tmp_path):
    folders = write(tmp_path, [*families(), *rows({3: ["lone thing"]})], n_chunks=12)
    found = library(folders, min_tag_chunks=2)
    assert "lone thing" not in {tag for row in found for tag in row["members"]}
    assert open_library(folders["concepts"]).facts["history"][0]["reason"] == (
        "1 tags on fewer than 2 chunks"
    )


def test_an_empty_corpus_is_told_apart_from_a_poor_one(tmp_path):
    folders = write(tmp_path, [], n_chunks=0)
    with pytest.raises(ValueError, match=r"no tag to make a library of.*Is the corpus empty"):
        library(folders)


def test_one_tag_alone_makes_a_library_of_one_concept(tmp_path):
    folders = write(tmp_path, rows({0: ["whale hunt"], 1: ["whale hunt"]}), n_chunks=2)
    (row,) = library(folders, sweep=(40, 80))
    assert (row["name"], row["n_chunks"], row["members"]) == ("Whale hunt", 2, ["whale hunt"])


def test_more_clusters_than_tags_are_as_many_as_there_are_tags(folders):
    library(folders, sweep=(5, 500), min_chunks=1, merge_cosine=1.0)
    facts = open_library(folders["concepts"]).facts
    assert [point["k"] for point in facts["coherence_curve"]] == [5, 9]
