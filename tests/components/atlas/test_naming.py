"""Names a person would use, and no two concepts of one name."""

import numpy as np
import pytest

from components.atlas import naming
from components.atlas.canonicalisation import canonicalise
from components.atlas.clusters import measure
from components.atlas.library_config import CanonicaliseConfig, NamingConfig
from components.atlas.naming import Card
from components.atlas.vocabulary import Vocabulary, _in_prose, key, singular, vocabulary
from components.endpoints import RemoteModel
from components.hashing import HashingEmbedder
from components.library import open_library
from tests.components.atlas.some_tags import rows, tagged, write
from tests.components.endpoint import serving

ENCODER = HashingEmbedder()
MEDOID = NamingConfig(namer="medoid")


def cards(
    tags_of: dict[int, list[str]], groups: list[int], titles: tuple[str, ...] = (),
    said: list[list[str]] | None = None,
) -> list[Card]:  # fmt: skip
    found = tagged(tags_of)
    words = vocabulary("none", found.texts, ENCODER)
    words = Vocabulary(
        titles, ENCODER.embed(titles), {key(title): title for title in titles}, words.heads
    )
    measured = measure(found, np.array(groups))
    return naming.named(
        found, measured, said or [[] for _ in range(measured.n)], words, ENCODER, MEDOID
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Matrices", "matrix"), ("Poem", "poems"), ("The king of France", "France's king"),
        ("Graph theory", "theory of graphs"), ("Churches", "church"), ("Ability", "abilities"),
    ],
)  # fmt: skip
def test_spellings_of_one_name_share_a_key(one, other):
    assert key(one) == key(other)


@pytest.mark.parametrize("word", ["gas", "class", "virus", "analysis", "sea"])
def test_what_only_looks_like_a_plural_stays(word):
    assert singular(word) == word


def test_a_word_that_ends_tags_is_more_like_a_noun_than_one_that_begins_them():
    words = vocabulary("none", ["write file", "write graph", "directed graph"], ENCODER)
    assert words.noun("graph") > words.noun("write")
    assert words.noun("completely") < words.noun("zebra")


def test_prose_tells_nouns_from_other_words():
    text = "on the shore of a sea. near the wide shore, and by a shore. the abnormal shore is. " * 3
    heads = _in_prose(text + "an abnormal growth of it. they occur. the abnormal wave in it. " * 5)
    assert heads["shore"] == 1.0
    assert heads["abnormal"] == heads["occur"] == 0.0


def test_samples_come_from_the_model_and_are_cleaned(tmp_path, monkeypatch):
    monkeypatch.setenv("CLEARSTORY_CACHE", str(tmp_path))
    found = tagged({1: ["sonnet", "stanza"], 2: ["sonnet"]})
    with serving(lambda number, body: (200, ("Poetry\nItems:", "one, two")[number % 2])) as there:
        told = NamingConfig(
            namer="language_model", n_samples=2,
            language_model=RemoteModel(base_url=there.url, name="m", n_concurrent=1),
        )  # fmt: skip
        said = naming.sampled(found, measure(found, np.array([0, 0])), told, lambda event: None)
        question = there.asked[0][1]["messages"][-1]["content"]
    assert said == [["Poetry"]]
    assert question == "sonnet, stanza"


def test_groups_that_no_noun_stands_for_are_dropped_on_record(tmp_path):
    said = {chunk: ["rapidly", "law court"] for chunk in range(3)}
    folders = write(tmp_path, rows(said), n_chunks=3)
    naming_config = NamingConfig(namer="medoid", least_noun=0.4)
    config = CanonicaliseConfig(
        encoder="hashing", sweep=(2,), drop_share=0.0, naming=naming_config
    )  # fmt: skip
    canonicalise(folders["tags"], folders["chunks"], folders["concepts"], config)
    library = open_library(folders["concepts"])
    assert [each.name for each in library.concepts] == ["Law court"]
    (step,) = library.facts["history"]
    assert step["names"] == ["rapidly"]
    assert "no noun phrase stands for it; the best name is Rapidly" in step["reason"]


def test_a_noun_is_preferred_to_a_verb_on_as_many_chunks():
    heads = {5: ["write letter"], 6: ["long letter"], 7: ["old letter"]}
    found = cards({1: ["write", "letter"], **heads}, [0, 1, 1, 0, 1])
    assert found[0].name == "Letter"


def test_a_title_is_taken_as_people_write_it():
    (card,) = cards({1: ["burkina faso"], 2: ["burkina faso"]}, [0], titles=("Burkina Faso",))
    assert card.name == "Burkina Faso"


def test_samples_that_agree_outweigh_one_that_does_not():
    agreed = cards({1: ["sonnet", "stanza"]}, [0, 0], said=[["Verse", "Verse"]])
    alone = cards({1: ["sonnet", "stanza"]}, [0, 0], said=[["Verse"]])
    assert (agreed[0].name, alone[0].name) != ("Verse", "Verse")


def test_groups_that_mean_the_same_keep_one_name_so_that_they_are_merged():
    found = cards({1: ["sea"], 2: ["seas"]}, [0, 1], titles=("Sea",))
    assert [card.name for card in found] == ["Sea", "Sea"] or (
        ENCODER.embed(["sea", "seas"]) @ ENCODER.embed(["sea"])[0]
    )[1] < naming.ONE_MEANING


def test_a_card_names_other_members_and_never_itself_twice():
    (card,) = cards({1: ["king", "queen"], 2: ["king"]}, [0, 0])
    assert card == Card("King", "Passages about or showing king: queen.")


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (" Poetry\nItems: x", "Poetry"), ("Category: Law.", "Law"), ("", ""), ("a, b, c", ""),
        ("12", ""), ("one two three four five six", ""),
    ],
)  # fmt: skip
def test_an_answer_is_a_name_or_nothing(answer, name):
    assert naming.cleaned(answer) == name
