"""Tags as text."""

import pytest

from components.atlas.tags import ParseError, Tag, kind_of, normalise, parse, typed


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("Mesopotamian-mythology", "mesopotamian mythology"),
        ("  The  liver_function. ", "liver function"),
        ("ﬁle parsing", "file parsing"),
        ("StaticFilesStorage", "static files storage"),
        ("Kruskal's algorithm", "kruskal's algorithm"),
        ("of the", ""),
        ("12345", ""),
        ("x", ""),
        ("one two three four five six seven", ""),
        ("a" * 61, ""),
        ("日本語", "日本語"),
        ("<b>bold</b>", "b bold"),
        ("film of 1939 1939 film", "film of 1939"),
    ],
)
def test_spelling_no_longer_tells_tags_apart_and_what_is_no_tag_is_empty(
    text: str, tag: str
) -> None:
    assert normalise(text) == tag


def test_answers_are_lists_of_strings_or_of_typed_objects_under_tags_or_alone() -> None:
    assert parse('{"tags": ["a", "b"]}') == [("a", ""), ("b", "")]
    assert parse('[{"tag": "a", "type": "tone"}, {"tag": "b"}]') == [("a", "tone"), ("b", "")]


@pytest.mark.parametrize(
    "answer", ["", "Sure! Here are tags", '{"tags": ["a", "b', "{}", "[1]", '{"tags": 3}', "null"]
)
def test_anything_else_is_no_answer(answer: str) -> None:
    with pytest.raises(ParseError):
        parse(answer)


def test_a_tag_counts_once_a_passage_and_keeps_a_kind_it_came_with() -> None:
    found = [("Red deer", "entity"), ("red-deer", ""), ("forest", "nonsense"), ("of", "tone")]
    assert typed(found, "red deer") == [Tag("red deer", "entity"), Tag("forest", "content")]


@pytest.mark.parametrize(
    ("tag", "kind"),
    [
        ("dramatic dialogue", "document"),
        ("formal prose", "tone"),
        ("lake garda", "entity"),
        ("ferries", "content"),
        ("unseen", "content"),
    ],
)
def test_the_rule_says_no_more_than_it_knows(tag: str, kind: str) -> None:
    assert kind_of(tag, "Ferries cross the waters of Lake Garda. There are ferries.") == kind
