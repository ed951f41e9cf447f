"""Tags become a library: clusters by meaning, a name each, every drop on record."""

from pathlib import Path

import numpy as np
import pytest

from components import contracts
from components.atlas import naming
from components.atlas.canonicalisation import canonicalise
from components.atlas.clusters import Tagged, cluster_of, knee
from components.atlas.library_config import CanonicaliseConfig, NamingConfig
from components.hashing import HashingEmbedder

FAMILIES = {
    "sea": ["sea voyage", "sea voyages", "long sea voyage"],
    "law": ["criminal law", "criminal laws", "law of crimes"],
    "sum": ["number theory", "theory of numbers", "number theories"],
}


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    """12 chunks, each with two tags of one of three families."""
    made = {name: tmp_path / name for name in ("tags", "chunks", "concepts")}
    for folder in made.values():
        folder.mkdir()
    families = list(FAMILIES.values())
    rows = [
        {"chunk_id": chunk, "tag": families[chunk % 3][(chunk // 3 + place) % 3], "kind": "content"}
        for chunk in range(12)
        for place in range(2)
    ]
    (made["tags"] / "sample.json").write_text("{}")
    contracts.write(rows, made["tags"], contracts.TAGS)
    piece = {"doc_id": "d", "start": 0, "end": 1, "n_wordpieces": 4, "status": "ok"}
    contracts.write(
        ({"chunk_id": row, **piece} for row in range(12)), made["chunks"], contracts.CHUNKS
    )
    return made


def config(**changes: object) -> CanonicaliseConfig:
    return CanonicaliseConfig(
        encoder="hashing", sweep=(3,), drop_share=0.0, min_chunks=2, max_prevalence=0.6,
        naming=NamingConfig(namer="medoid"),
    ).model_copy(update=changes)  # fmt: skip


def library(folders: dict[str, Path], **changes: object) -> list[dict]:
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


def test_the_same_tags_make_the_same_library(folders, tmp_path):
    library(folders)
    first = contracts.json_file(folders["concepts"], "library.json")["digest"]
    again = tmp_path / "again"
    again.mkdir()
    library({**folders, "concepts": again})
    assert contracts.json_file(again, "library.json")["digest"] == first


def test_rare_and_too_common_concepts_are_dropped_on_record(folders):
    with pytest.raises(ValueError, match=r"no concept is left of 3 clusters.*min_chunks \(2\)"):
        library(folders, max_prevalence=0.2)
    with pytest.raises(ValueError, match=r"min_chunks \(5\)"):
        library(folders, min_chunks=5)


def test_the_history_says_why_a_cluster_is_gone(folders):
    library(folders, drop_share=0.34)
    facts = contracts.json_file(folders["concepts"], "library.json")
    (step,) = facts["history"]
    assert step["action"] == "drop"
    assert "among the lowest" in step["reason"]
    assert facts["n_concepts"] == 2


def test_cards_that_cannot_be_told_apart_are_merged(folders):
    found = library(folders, sweep=(9,), merge_cosine=0.3, min_chunks=1)
    assert len(found) < 9
    facts = contracts.json_file(folders["concepts"], "library.json")
    assert {step["action"] for step in facts["history"]} == {"merge"}


def test_the_knee_stands_highest_over_the_chord():
    assert knee({10: 0.3, 20: 0.6, 30: 0.65, 40: 0.68}) == 20
    assert knee({10: 0.3, 20: 0.6}) == 20


def test_coherence_by_hand():
    vectors_ND = np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    tagged = Tagged(("a", "b"), ("content",) * 2, (frozenset({1}), frozenset({2})), vectors_ND, 2)
    assert cluster_of([0, 1], tagged).coherence == pytest.approx(2**-0.5)
    assert cluster_of([0], tagged).coherence == pytest.approx(1.0)


def test_names_differ_even_where_clusters_read_alike():
    encoder = HashingEmbedder()
    texts = ("sea", "sea ")
    vectors_ND = encoder.embed(texts)
    tagged = Tagged(texts, ("content",) * 2, (frozenset({1}),) * 2, vectors_ND, 1)
    clusters = [cluster_of([0], tagged), cluster_of([0], tagged)]
    cards = naming.name(clusters, tagged, encoder, NamingConfig(namer="medoid"), lambda event: None)
    assert [card.name for card in cards] == ["Sea", "Sea (2)"]


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (" Poetry\nItems: x", "Poetry"), ("Category: Law.", "Law"), ("", ""), ("a, b, c", ""),
        ("12", ""), ("one two three four five six", ""),
    ],
)  # fmt: skip
def test_an_answer_is_a_name_or_nothing(answer, name):
    assert naming._cleaned(answer) == name
