"""Phase 2 shows three names that nothing on the page tells apart."""

import json
import re

import numpy as np
import pytest

from components import contracts
from components.library import freeze
from components.study.collecting import collect
from components.study.config import CollectConfig, DrawConfig, PairConfig
from components.study.drawing import StudyError, draw
from components.study.form import Asked, Sheet, Shown, questionnaire
from components.study.pairing import as_shown, pair
from components.study.sheets import PAGES
from tests.components.study.simulated import answer_all, write_library

DRAW = DrawConfig(n_concepts=7, n_words=4, min_support=2, n_raters=4, ratings_per_concept=2)
PAIR = PairConfig(n_raters=4, ratings_per_concept=3)


def phase_one(folder):
    written = write_library(folder / "library")
    for name in ("study", "answers", "paired"):
        (folder / name).mkdir()
    draw(written.concepts, written.lifted, written.tokens, folder / "study", DRAW)
    returned = answer_all(folder / "study", folder / "returned")
    collect(folder / "study", folder / "answers", CollectConfig.of(returned))
    return written


@pytest.fixture(scope="module")
def paired(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paired")
    written = phase_one(folder)
    pair(folder / "study", folder / "answers", written.concepts, folder / "paired", PAIR)
    return folder / "paired"


def test_each_rater_meets_the_three_names_of_a_concept_in_orders_that_vary(paired):
    rows = contracts.read(paired, contracts.STUDY).to_pylist()
    orders = {}
    for row in rows:
        orders.setdefault((row["rater_id"], row["concept_id"]), []).append(row["kind"])
    assert len(orders) == 7 * 3
    assert {tuple(sorted(kinds)) for kinds in orders.values()} == {
        ("distractor", "human", "pipeline")
    }
    assert len({tuple(kinds) for kinds in orders.values()}) > 3


def test_the_author_of_a_name_is_not_asked_and_the_distractor_is_of_another_branch(paired):
    answers = contracts.read(paired.parent / "answers", contracts.ANSWERS).to_pylist()
    rows = contracts.read(paired, contracts.STUDY).to_pylist()
    authors = {(row["rater_id"], row["concept_id"]) for row in answers}
    asked = {(row["rater_id"], row["concept_id"]) for row in rows}
    # Two of four raters named each concept and three are asked: one of the two at the most.
    assert {len({r for r, c in asked & authors if c == k}) for _, k in asked} == {1}
    library = {f"Topic {'abcdefghi'[k]}": k % 3 for k in range(9)}
    distractors = [row for row in rows if row["kind"] == "distractor"]
    assert all(library[row["name"]] != row["concept_id"] % 3 for row in distractors)


def test_no_page_tells_what_a_name_is(paired):
    rows = contracts.read(paired, contracts.STUDY).to_pylist()
    for page in (paired / PAGES).iterdir():
        source = page.read_text()
        assert not re.search(r"pipeline|human|distractor|concept_id|branch", source, re.IGNORECASE)
        own = [row for row in rows if row["rater_id"] == page.stem]
        data = json.loads(re.search(r'id="study">(.*?)</script>', source).group(1))
        assert set(data) == {"study_id", "rater_id", "phase", "asked", "question", "ends"}
        shown = [shown for asked in data["asked"] for shown in asked["shown"]]
        assert [set(each) for each in shown] == [{"item_id", "name"}] * len(own)
        assert [each["item_id"] for each in shown] == [row["item_id"] for row in own]
        digests = contracts.json_file(paired, "study.json")["drawn_from"]
        assert not [digest for digest in digests.values() if digest in source]


def test_ids_are_in_no_order_that_kinds_follow(paired):
    rows = contracts.read(paired, contracts.STUDY).to_pylist()
    lowest = {}
    for row in rows:
        place = (row["rater_id"], row["concept_id"])
        lowest[place] = min(lowest.get(place, ("z", "")), (row["item_id"], row["kind"]))
    assert {kind for _, kind in lowest.values()} == {"pipeline", "human", "distractor"}


def test_a_page_reads_nothing_from_elsewhere_and_names_cannot_leave_their_place():
    hostile = '</script><script src="https://example.org/x.js"></script>'
    page = questionnaire(Sheet("s", "r01", 2, [Asked(["word"], [Shown("i", hostile)])]))
    assert page.count("<script") == 2
    assert "default-src 'none'" in page.replace("&#39;", "'")
    assert not re.search(r'(?:src|href)="', page.replace(json.dumps(hostile)[1:-1], ""))


def test_names_are_written_alike_whoever_gave_them():
    assert as_shown("  the  weather at sea. ") == "The weather at sea"


def test_equal_names_are_one_item_that_counts_for_both(tmp_path):
    written = phase_one(tmp_path)
    rows = contracts.read(tmp_path / "answers", contracts.ANSWERS).to_pylist()
    own = [{**row, "name": f"tOPIC {'abcdefghi'[row['concept_id']]}."} for row in rows]
    contracts.write(own, tmp_path / "answers", contracts.ANSWERS)
    pair(tmp_path / "study", tmp_path / "answers", written.concepts, tmp_path / "paired", PAIR)
    assert contracts.json_file(tmp_path / "paired", "study.json")["n_same_name"] == 7
    (tmp_path / "second").mkdir()
    returned = answer_all(tmp_path / "paired", tmp_path / "fits")
    n_rows = collect(tmp_path / "paired", tmp_path / "second", CollectConfig.of(returned))
    assert n_rows == 7 * 3 * 3
    facts = contracts.json_file(tmp_path / "second", "collected.json")
    assert facts["n_items_answered"] == 7 * 3 * 2


def test_another_library_is_refused_with_both_digests(tmp_path):
    written = phase_one(tmp_path)
    own = contracts.json_file(written.concepts, "library.json")["digest"]
    other = tmp_path / "other"
    other.mkdir()
    rows = contracts.read(written.concepts, contracts.CONCEPTS).to_pylist()
    freeze(rows[:8], np.eye(8, dtype=np.float32), {}, other)
    told = rf"library [0-9a-f]{{12}}…, the study was drawn from {own[:12]}…"
    with pytest.raises(StudyError, match=told):
        pair(tmp_path / "study", tmp_path / "answers", other, tmp_path / "paired", PAIR)
