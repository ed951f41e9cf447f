"""Answers that do not belong are refused by file and item."""

import json
from types import SimpleNamespace

import pytest

from components import contracts
from components.study.collecting import AnswersError, collect
from components.study.config import CollectConfig, DrawConfig
from components.study.drawing import draw
from tests.components.study.simulated import answer_all, write_library

CONFIG = DrawConfig(n_concepts=5, n_words=4, min_support=2, n_raters=3, ratings_per_concept=2)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drawn")
    written = write_library(folder / "library")
    (folder / "study").mkdir()
    draw(written.concepts, written.lifted, written.tokens, folder / "study", CONFIG)
    return folder / "study"


@pytest.fixture
def place(drawn, tmp_path):
    (tmp_path / "answers").mkdir()
    return SimpleNamespace(
        study=drawn, returned=answer_all(drawn, tmp_path / "returned"),
        answers=tmp_path / "answers",
    )  # fmt: skip


def edit(place, rater, **changes):
    path = place.returned / f"{rater}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def answers_of(place, rater):
    return json.loads((place.returned / f"{rater}.json").read_text())["answers"]


def collected(place, **rest):
    return collect(place.study, place.answers, CollectConfig.of(place.returned, **rest))


def test_every_rating_comes_back_in_the_order_of_the_key(place):
    assert collected(place) == 10
    rows = contracts.read(place.answers, contracts.ANSWERS).to_pylist()
    key = contracts.read(place.study, contracts.STUDY).to_pylist()
    assert [row["item_id"] for row in rows] == [row["item_id"] for row in key]
    assert rows[0]["name"] == f"My idea {rows[0]['concept_id']}"
    assert contracts.json_file(place.answers, "collected.json")["missing_by_rater"] == {}


def test_a_second_file_of_a_rater_is_refused_with_both_names(place):
    first = place.returned / "r01.json"
    (place.returned / "again.json").write_text(first.read_text())
    with pytest.raises(AnswersError, match=r"r01.json and .*again.json are both of rater r01"):
        collected(place)


def test_answers_of_another_study_are_refused(place):
    edit(place, "r02", study_id="0123")
    with pytest.raises(AnswersError, match=r"r02.json answers study 0123, this is study [0-9a-f]+"):
        collected(place)


def test_an_unknown_rater_is_refused(place):
    edit(place, "r02", rater_id="r09")
    with pytest.raises(AnswersError, match=r"r02.json is of rater 'r09'.*it has r01, r02, r03"):
        collected(place)


def test_a_page_filled_in_by_the_wrong_rater_is_refused_by_item(place):
    swapped = answers_of(place, "r01")
    edit(place, "r02", answers=swapped)
    item = swapped[0]["item_id"]
    with pytest.raises(AnswersError, match=rf"r02.json, item {item}: not on the page of rater r02"):
        collected(place)


@pytest.mark.parametrize("rating", [0, 6])
def test_a_rating_off_the_scale_is_refused_by_item(place, rating):
    own = answers_of(place, "r03")
    own[1]["rating"] = rating
    edit(place, "r03", answers=own)
    told = (
        rf"r03.json, item {own[1]['item_id']}: the rating is {rating}, the scale goes from 1 to 5"
    )
    with pytest.raises(AnswersError, match=told):
        collected(place)


@pytest.mark.parametrize("rating", [3.5, "3", None, True])
def test_a_rating_that_is_no_whole_number_is_refused_by_item(place, rating):
    own = answers_of(place, "r03")
    own[1]["rating"] = rating
    edit(place, "r03", answers=own)
    told = rf"r03.json is no file of answers: answers.1.rating \(item {own[1]['item_id']}\)"
    with pytest.raises(AnswersError, match=told):
        collected(place)


def test_an_item_answered_twice_is_refused(place):
    own = answers_of(place, "r01")
    edit(place, "r01", answers=[*own, own[0]])
    with pytest.raises(AnswersError, match=rf"item {own[0]['item_id']}: answered twice"):
        collected(place)


def test_a_name_longer_than_a_name_is_refused(place):
    own = answers_of(place, "r01")
    own[0]["name"] = "x" * 81
    edit(place, "r01", answers=own)
    with pytest.raises(AnswersError, match=r"the name has 81 characters, 80 at most"):
        collected(place)


def test_half_a_file_is_refused(place):
    path = place.returned / "r01.json"
    path.write_text(path.read_text()[:50])
    with pytest.raises(AnswersError, match=r"r01.json is no file of answers: the whole file"):
        collected(place)


def test_missing_answers_are_refused_or_counted_as_the_config_says(place):
    own = answers_of(place, "r01")
    edit(place, "r01", answers=own[1:])
    with pytest.raises(AnswersError, match=rf"r01.json lacks 1 answers, .* {own[0]['item_id']}"):
        collected(place)
    (place.returned / "r02.json").unlink()
    with pytest.raises(AnswersError, match=r"has no file of r02"):
        collected(place)
    assert collected(place, allow_missing=True) == 10 - 1 - len(answers_of_key(place, "r02"))
    said = contracts.json_file(place.answers, "collected.json")
    assert said["n_raters"] == 2
    assert said["missing_by_rater"]["r01"] == 1


def answers_of_key(place, rater):
    rows = contracts.read(place.study, contracts.STUDY).to_pylist()
    return [row for row in rows if row["rater_id"] == rater]


def test_files_that_changed_after_they_were_counted_are_refused(place):
    config = CollectConfig.of(place.returned)
    edit(place, "r01", answers=[])
    with pytest.raises(AnswersError, match="changed since they were counted"):
        collect(place.study, place.answers, config)


def test_an_empty_folder_says_what_belongs_there(place, tmp_path):
    (tmp_path / "none").mkdir()
    config = CollectConfig(folder=str(tmp_path / "none"), digest="")
    with pytest.raises(AnswersError, match=r"holds no .json file; put the files there"):
        collect(place.study, place.answers, config)
