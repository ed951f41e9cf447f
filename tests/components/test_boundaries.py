"""Where texts may be cut."""

from itertools import pairwise

from components.boundaries import levels


def pieces(text: str, level: int, *, is_code: bool = False) -> list[str]:
    places = levels(text, is_code=is_code)[level].places.tolist()
    edges = [0, *places, len(text)]
    return [text[a:b] for a, b in pairwise(edges) if b > a]


def test_headings_start_a_piece_in_markdown_underlined_and_in_plays() -> None:
    text = "intro\n# One\nbody\nTwo\n===\nbody\nACT II\nbody\nSCENE. A heath.\nbody\n"
    assert pieces(text, 0) == [
        "intro\n", "# One\nbody\n", "Two\n===\nbody\n", "ACT II\nbody\n", "SCENE. A heath.\nbody\n",
    ]  # fmt: skip


def test_paragraphs_end_after_their_blank_lines() -> None:
    assert pieces("a\n\nb\n \n\n  c\nd", 1) == ["a\n\n", "b\n \n\n", "  c\nd"]


def test_list_items_start_a_piece() -> None:
    assert pieces("so:\n- a\n  b\n* c\n1. d\n", 2) == ["so:\n", "- a\n  b\n", "* c\n", "1. d\n"]


def test_sentences_end_at_their_signs_but_not_inside_abbreviations_or_initials() -> None:
    text = 'Dr. Who met J. Smith, e.g. here. "Go!" He left... Then? 3.5 is a number. 日本。語'
    assert pieces(text, 3) == [
        "Dr. Who met J. Smith, e.g. here. ", '"Go!" ', "He left... ", "Then? ",
        "3.5 is a number. ", "日本。", "語",
    ]  # fmt: skip


def test_code_is_cut_before_definitions_with_their_decorators() -> None:
    text = "import a\n\n@cache\n@b(1)\ndef f():\n    def g(): pass\n\nclass C:\n    x = 1\n"
    assert pieces(text, 0, is_code=True) == [
        "import a\n\n", "@cache\n@b(1)\ndef f():\n    def g(): pass\n\n", "class C:\n    x = 1\n",
    ]  # fmt: skip
