"""Phrases as tags."""

from components.atlas.phrases import candidates, recurring_of, tags_of
from components.hashing import HashingEmbedder


def test_candidates_are_runs_between_function_words_and_signs() -> None:
    assert candidates("The spanning trees of a Graph, quickly computed.") == [
        "spanning", "trees", "spanning trees", "graph",
    ]  # fmt: skip


def test_names_in_code_are_taken_apart_and_its_keywords_are_no_phrases() -> None:
    found = candidates("def static_files(self): return AdminSite.registry")
    assert {"static files", "admin site", "registry"} <= set(found)
    assert not {"self", "return", "def"} & set(found)


def test_chosen_phrases_are_like_the_passage_and_unlike_each_other() -> None:
    passage = "Liver cells, liver disease, liver cells. The king wept."
    encoder = HashingEmbedder()
    (found,) = tags_of([passage], encoder.embed([passage]), encoder, n=3)
    assert found[0] in ("liver cells", "liver disease")
    assert len(set(found)) == 3
    assert any("king" in phrase for phrase in found) or "liver disease" in found


def test_a_passage_without_phrases_has_no_tags() -> None:
    encoder = HashingEmbedder()
    assert tags_of(["of the 12 !!"], encoder.embed(["x"]), encoder, n=3) == [[]]


def test_phrases_of_some_passages_tag_them_and_those_of_one_or_of_most_do_not() -> None:
    texts = [f"The white whale swam past the vessel {name}." for name in
             ("Rachel", "Samuel", "Jeroboam", "Virgin")]  # fmt: skip
    texts += [f"Nothing of note happened at all in the town of {name}." for name in
              ("Ely", "Wells", "Ripon", "Truro") for _ in range(9)]  # fmt: skip
    encoder = HashingEmbedder()
    found, few = (recurring_of(texts, encoder.embed(texts), encoder, n) for n in (8, 3))
    assert "white whale" in found[0]
    assert not any("rachel" in phrase for phrase in found[0])
    assert few[0] == found[0][:3]
    assert any(not of_passage for of_passage in found), "a phrase of most passages tags none"
