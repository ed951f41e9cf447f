"""A model that follows instructions names, refuses, merges and places, against an endpoint here."""

import json

import pytest

from components.atlas import consulting
from components.atlas.canonicalisation import canonicalise
from components.atlas.consulting import Verdict
from components.atlas.library_config import CanonicaliseConfig, NamingConfig
from components.atlas.merging import One
from components.endpoints import RemoteModel
from components.library import open_library
from tests.components.atlas.some_tags import families, write
from tests.components.endpoint import serving

TAUGHT = "Taught at universities everywhere."


def config(url: str) -> CanonicaliseConfig:
    naming = NamingConfig(
        namer="language_model", follows_instructions=True,
        language_model=RemoteModel(base_url=url, name="m", n_concurrent=1, max_attempts=1),
    )  # fmt: skip
    return CanonicaliseConfig(
        encoder="hashing", sweep=(3,), drop_share=0.0, min_chunks=2, merge_cosine=0.1,
        naming=naming,
    )  # fmt: skip


def reply(number, body):
    """Names by the first tag; seas have no common meaning; all else is one concept."""
    system, question = body["messages"][0]["content"], body["messages"][-1]["content"]
    if system.startswith("You name"):
        tags = json.loads(question)
        coherent = 1 if any("sea" in tag for tag in tags) else 5
        return 200, json.dumps(
            {
                "name": f"All about {tags[0]}",
                "description": TAUGHT,
                "coherent": coherent,
            }
        )
    if system.startswith("You tidy"):
        return 200, json.dumps({"groups": [{"ids": [0, 1], "name": "Law and number"}]})
    return 200, json.dumps({"parent": json.loads(question)["branches"][-1]})


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CLEARSTORY_CACHE", str(tmp_path / "cache"))


def test_the_model_decides_and_every_decision_is_on_record(tmp_path, cache):
    folders = write(tmp_path, families(), n_chunks=12)
    with serving(reply) as endpoint:
        n = canonicalise(folders["tags"], folders["chunks"], folders["concepts"],
                         config(endpoint.url))  # fmt: skip
        n_asked = len(endpoint.asked)
        again = write(tmp_path / "again", families(), n_chunks=12)
        canonicalise(again["tags"], again["chunks"], again["concepts"], config(endpoint.url))
        assert len(endpoint.asked) == n_asked, "the same thing was asked twice"
    library = open_library(folders["concepts"])
    assert n == 1
    (concept,) = library.concepts
    assert (concept.name, concept.description) == (
        "Law and number",
        TAUGHT,
    )
    assert concept.taxonomy == f"{concept.parent} / Law and number"
    steps = library.facts["history"]
    assert [step["action"] for step in steps] == ["drop", "merge", "move"]
    assert steps[0]["reason"] == "the language model rates its coherence 1 of 5"
    assert open_library(again["concepts"]).digest == library.digest


@pytest.mark.parametrize(
    "text", ["", "I would call it law.", '{"name": "Law"', "[1]", '{"name": 3, "coherent": 4}'],
)  # fmt: skip
def test_an_endpoint_that_answers_nonsense_leaves_the_library_to_embeddings(tmp_path, cache, text):
    folders = write(tmp_path, families(), n_chunks=12)
    with serving(lambda number, body: (200, text)) as endpoint:
        canonicalise(folders["tags"], folders["chunks"], folders["concepts"],
                     config(endpoint.url).model_copy(update={"merge_cosine": 0.9}))  # fmt: skip
    library = open_library(folders["concepts"])
    assert len(library.concepts) == 3
    assert library.facts["history"] == []


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ({"name": "INCOHERENT"}, Verdict("", "", 1)),
        ({"name": "incoherent ", "description": "x", "coherent": 4}, Verdict("", "", 1)),
        ({"name": "Law", "description": " a  b ", "coherent": 2}, Verdict("Law", "a b", 2)),
        ({"name": "Law", "coherent": 9}, Verdict("", "", 0)),
        ({"name": "x" * 60, "coherent": 4}, Verdict("", "", 0)),
    ],
)
def test_a_verdict_is_what_can_be_read_of_it(said, verdict):
    assert consulting._verdict(said) == verdict


def test_groups_of_a_community_are_places_that_exist_each_in_one():
    said = {"groups": [{"ids": [0, 7, 2, 2], "name": "Sea"}, {"ids": [2, 1], "name": "x"},
                       {"ids": "all"}, 3]}  # fmt: skip
    assert consulting._ones(said, 4) == [One((0, 2), "Sea")]
