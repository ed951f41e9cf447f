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
        ("<b>bold</b> face", "bold face"),
        ("&lt;script&gt;alert&lt;/script&gt;", "alert"),
        ("[liver](http://x.y/z)", "liver"),
        ("**renal** `failure`", "renal failure"),
        ("if a < b", "if a b"),
        ("हिन्दी कविता", "हिन्दी कविता"),
        ("ภาษาไทย", "ภาษาไทย"),
        ("肝臓", "肝臓"),
        ("法", ""),
        ("ab", ""),
        ("liver\ud800\x00\u202e", "liver"),
        ("liver " * 2_000, "liver"),
        ("liver" * 2_000, ""),
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
    assert parse('```json\n["a"]\n```\n') == [("a", "")]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "Sure! Here are tags",
        '{"tags": ["a", "b',
        "{}",
        "[1]",
        '{"tags": 3}',
        "null",
        "[" * 100_000,
    ],
)
def test_anything_else_is_no_answer(answer: str) -> None:
    with pytest.raises(ParseError):
        parse(answer)


def test_a_tag_counts_once_a_passage_and_keeps_a_kind_it_came_with() -> None:
    found = [("Red deer", "entity"), ("red-deer", ""), ("forest", "nonsense"), ("of", "tone")]
    assert typed(found, "red deer") == [Tag("red deer", "entity"), Tag("forest", "content")]


def test_tags_in_a_script_of_neither_passage_nor_latin_are_left_out() -> None:
    found = [("печень", ""), ("肝臓", ""), ("liver", ""), ("foie gras", "")]
    assert [tag.text for tag in typed(found, "The liver.")] == ["liver", "foie gras"]
    assert [tag.text for tag in typed(found, "Печень фильтрует кровь.")] == [
        "печень", "liver", "foie gras",
    ]  # fmt: skip


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
