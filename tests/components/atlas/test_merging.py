"""Concepts that cannot be told apart become one, and a chain is not one concept."""

import numpy as np

from components.atlas.clusters import measure
from components.atlas.draft import CardVectors, Draft, History
from components.atlas.library_config import CanonicaliseConfig, NamingConfig
from components.atlas.merging import One, merged
from components.atlas.naming import Card
from tests.components.atlas.some_tags import tagged


class Angles:
    """An encoder whose texts begin with their direction in the plane, in degrees."""

    name, digest, width, max_wordpieces = "angles", "0", 2, 9

    def embed(self, texts):
        angle = np.radians([float(text.split()[0]) for text in texts])
        return np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)


def draft(*names: str) -> Draft:
    """One concept a name, the first on most chunks; its tag is the name."""
    tags_of = {chunk: list(names[: len(names) - chunk]) for chunk in range(len(names))}
    found = tagged(tags_of, Angles())
    row = {text: at for at, text in enumerate(found.texts)}
    group_N = np.empty(len(names), dtype=np.int64)
    group_N[[row[name] for name in names]] = np.arange(len(names))
    cards = tuple(Card(name, "") for name in names)
    return Draft(found, measure(found, group_N), cards)


def config(follows_instructions: bool = False) -> CanonicaliseConfig:
    naming = NamingConfig(namer="medoid", follows_instructions=follows_instructions)
    return CanonicaliseConfig(encoder="angles", sweep=(1,), merge_cosine=0.9, naming=naming)


def names(made: Draft) -> list[str]:
    return [card.name for card in made.cards]


def test_a_chain_of_neighbours_is_not_one_concept():
    history = History()
    made = merged(draft("0 sea", "20 bay", "40 lake"), CardVectors(Angles()), config(), history,
                  confirm=None)  # fmt: skip
    assert names(made) == ["0 sea", "40 lake"]
    (step,) = history.steps
    assert step["names"] == ["0 sea", "20 bay"]
    assert step["reason"] == "cards at least 0.9 alike; now 0 sea"
    assert made.members(0) == ["0 sea", "20 bay"]
    assert made.cards[0].description == "Passages about or showing 0 sea: 20 bay."


def test_the_model_has_the_last_word_on_who_is_one():
    asked = []

    def confirm(communities):
        asked.extend([card.name for card in cards] for cards in communities)
        return [[One((1, 2), "22 water")] for _ in communities]

    history = History()
    made = merged(draft("0 sea", "15 bay", "30 lake"), CardVectors(Angles()),
                  config(follows_instructions=True), history,
                  confirm=lambda said: confirm(said) if not asked else [[] for _ in said],
                  )  # fmt: skip
    assert asked == [["0 sea", "15 bay", "30 lake"]]
    assert [card.name for card in made.cards] == ["0 sea", "22 water"]
    assert "language model cannot tell them apart" in str(history.steps[0]["reason"])


def test_equal_names_are_one_concept_if_their_tags_mean_the_same():
    made = draft("0 bears", "30 bear", "170 bear cub")
    cards = (Card("Bear", "0"), Card("Bears", "90"), Card("bear", "170"))
    same = Draft(made.tagged, made.groups, cards)
    found = merged(same, CardVectors(ByDescription()), config(), History(), confirm=None)
    assert names(found) == ["Bear", "bear (170 bear cub)"]
    assert found.members(0) == ["0 bears", "30 bear"]


class ByDescription(Angles):
    """Cards by the angle that their description begins with, or, described anew, by 45."""

    def embed(self, texts):
        said = [text.split(". ")[1] if ". " in text else text for text in texts]
        return super().embed([each if each[:1].isdigit() else "45" for each in said])
