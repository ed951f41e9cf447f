"""Concepts over the branches, raters over the concepts, the same study from the same inputs."""

import re
from collections import Counter

import numpy as np
import pytest

from components import contracts
from components.study.config import DrawConfig
from components.study.drawing import StudyError, draw, shared_out, stratified
from components.study.sheets import PAGES, Question, assigned
from tests.components.study.simulated import write_library

CONFIG = DrawConfig(n_concepts=6, n_words=4, min_support=2, n_raters=4, ratings_per_concept=3)


def drawn(folder, name="study", config=CONFIG):
    written = write_library(folder / f"of-{name}")
    study = folder / name
    study.mkdir()
    draw(written.concepts, written.lifted, written.tokens, study, config)
    return study


def test_a_concept_with_too_few_words_is_passed_over_and_counted(tmp_path):
    study = drawn(tmp_path)
    facts = contracts.json_file(study, "study.json")
    assert (facts["n_known_concepts"], facts["n_passed_over"]) == (9, 1)
    assert facts["branches"]["Life"] == {"known": 3, "readable": 2, "drawn": 2}
    rows = contracts.read(study, contracts.STUDY).to_pylist()
    assert 8 not in {row["concept_id"] for row in rows}
    assert {len(row["words"]) for row in rows} == {4}


def test_every_concept_has_its_raters_and_loads_differ_by_one(tmp_path):
    rows = contracts.read(drawn(tmp_path), contracts.STUDY).to_pylist()
    assert set(Counter(row["concept_id"] for row in rows).values()) == {3}
    loads = Counter(row["rater_id"] for row in rows).values()
    assert len(loads) == 4
    assert max(loads) - min(loads) <= 1


def test_raters_meet_concepts_in_orders_of_their_own(tmp_path):
    config = CONFIG.model_copy(update={"ratings_per_concept": 4})
    rows = contracts.read(drawn(tmp_path, config=config), contracts.STUDY).to_pylist()
    orders = {
        tuple(row["concept_id"] for row in rows if row["rater_id"] == rater)
        for rater in ("r01", "r02", "r03", "r04")
    }
    assert len(orders) == 4


def test_a_page_of_phase_one_holds_words_and_no_name_of_the_library(tmp_path):
    for page in (drawn(tmp_path) / PAGES).iterdir():
        source = page.read_text()
        assert "aaaa" in source
        assert not re.search(r"topic|earth|home|life|made-up|concept_id", source, re.IGNORECASE)


def test_the_same_inputs_make_the_same_bytes_and_another_seed_other_ids(tmp_path):
    one, same = drawn(tmp_path, "one"), drawn(tmp_path, "same")
    other = drawn(tmp_path, "other", CONFIG.model_copy(update={"seed": 1}))
    assert contracts.manifest_of(one).digest == contracts.manifest_of(same).digest
    ids = [contracts.json_file(folder, "study.json")["study_id"] for folder in (one, other)]
    assert ids[0] != ids[1]


def test_too_few_readable_concepts_are_refused_with_the_count(tmp_path):
    with pytest.raises(StudyError, match=r"^8 of 9 concepts have 4 readable .* the study wants 9"):
        drawn(tmp_path, config=CONFIG.model_copy(update={"n_concepts": 9}))


def test_places_are_shared_out_by_size_with_one_for_each_by_hand():
    assert shared_out({"a": 17, "b": 2, "c": 1}, 10) == {"a": 8, "b": 1, "c": 1}
    assert shared_out({"a": 17, "b": 2, "c": 1}, 2) == {"a": 1, "b": 1, "c": 0}


def test_strata_hold_what_they_were_promised():
    branch = {k: "large" if k < 30 else "small" for k in range(34)}
    found = stratified(branch, 17, np.random.default_rng(0))
    assert Counter(branch[k] for k in found) == {"large": 15, "small": 2}
    assert len(set(found)) == 17


def test_a_barred_rater_is_never_asked():
    questions = [Question(k, "b", ["w"], {}, frozenset({k % 4})) for k in range(12)]
    shares = assigned(questions, CONFIG, np.random.default_rng(0))
    assert [[c for c in share if c % 4 == rater] for rater, share in enumerate(shares)] == [[]] * 4
    assert sum(map(len, shares)) == 36
