"""Answers on disk."""

from pathlib import Path

from components.answers import Answer, Answers

REQUEST: dict[str, object] = {"model": "m", "prompt": "Items: é\nAnswer:", "seed": 3}


def test_an_answer_is_found_by_the_very_same_request_only(tmp_path: Path) -> None:
    answers = Answers(tmp_path)
    answers.put(REQUEST, Answer("Trees", 5, 2))
    assert answers.get(dict(reversed(REQUEST.items()))) == Answer("Trees", 5, 2)
    for key in REQUEST:
        assert answers.get({**REQUEST, key: "other"}) is None


def test_a_damaged_answer_counts_as_none(tmp_path: Path) -> None:
    answers = Answers(tmp_path)
    answers.put(REQUEST, Answer("Trees", 5, 2))
    (kept,) = tmp_path.rglob("*.json")
    kept.write_text(kept.read_text()[:40])
    assert answers.get(REQUEST) is None
