"""A whole study with simulated raters: phases belong together, and the page tells what they say."""

import json

import pytest

from components import contracts
from components.study.analysis import AnalysisError, analyse
from components.study.config import AnalyseConfig
from tests.components.study.simulated import rated

CONFIG = AnalyseConfig(power_concepts=(2, 5), power_runs=200)
EFFECTS = {"pipeline": 0.8, "human": 0.2, "distractor": -1.5}


def write_answers(folder, phase, follows="", n_concepts=9, n_raters=3, **spread):
    folder.mkdir()
    effects = {"words": 0.3} if phase == 1 else EFFECTS
    ratings = rated(n_concepts, n_raters, effects=effects, seed=0, **spread)
    rows = [
        {
            "item_id": f"{kind}{g}-{c}", "rater_id": f"r{g}", "concept_id": 3 * c, "branch": "b",
            "kind": kind, "name": "n", "rating": int(value),
        }
        for kind, of_kind in ratings.items()
        for g, c, value in zip(
            of_kind.rater_N.tolist(), of_kind.concept_N.tolist(), of_kind.value_N, strict=True
        )
    ]  # fmt: skip
    said = {
        "study_id": f"s{phase}", "phase": phase, "library_digest": "lib", "follows": follows,
        "n_raters": n_raters, "n_raters_asked": n_raters, "n_items_answered": len(rows),
        "n_items_asked": len(rows), "missing_by_rater": {}, "n_without_name": 0,
    }  # fmt: skip
    (folder / "collected.json").write_text(json.dumps(said))
    contracts.write(rows, folder, contracts.ANSWERS)
    return folder


@pytest.fixture(scope="module")
def analysed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("analysed")
    named = write_answers(folder / "named", 1)
    rated_too = write_answers(folder / "rated", 2, follows="s1")
    for name in ("analysis", "again"):
        (folder / name).mkdir()
        analyse(named, [rated_too], folder / name, CONFIG)
    return folder / "analysis"


def test_every_figure_lies_in_its_interval_with_its_n(analysed):
    found = contracts.json_file(analysed, "analysis.json")
    parts = ("coherence", "fit", "models", "by_coherence", "power")
    figures = {name: figure for part in parts for name, figure in found[part].items()}
    assert {"icc1", "superiority_pipeline_over_human", "mixed_difference_by_name", "power_at_9",
            "coherence_to_fit_human", "top_two_distractor"} <= figures.keys()  # fmt: skip
    wrong = [n for n, f in figures.items() if not f["low"] - 1e-9 <= f["value"] <= f["high"] + 1e-9]
    assert wrong == []
    assert all(figure["n"] > 0 and figure["unit"] for figure in figures.values())


def test_the_page_shows_each_part_beside_what_was_published(analysed):
    page = (analysed / "analysis.html").read_text()
    for text in ("pipeline above human", "0.62 [0.58, 0.66]", "agreement of raters, ICC(1)",
                 "Share of simulated studies", "Left out:", "27 pairs"):  # fmt: skip
        assert text in page


def test_the_same_answers_make_the_same_bytes(analysed):
    again = contracts.manifest_of(analysed.parent / "again")
    assert contracts.manifest_of(analysed).digest == again.digest


def test_phase_one_alone_has_no_figures_of_names(tmp_path):
    (tmp_path / "analysis").mkdir()
    n_figures = analyse(write_answers(tmp_path / "a", 1), [], tmp_path / "analysis", CONFIG)
    found = contracts.json_file(tmp_path / "analysis", "analysis.json")
    assert n_figures == len(found["coherence"]) == 8
    assert "Which name fits?" not in (tmp_path / "analysis" / "analysis.html").read_text()


def test_phases_of_two_studies_are_refused_with_both_ids(tmp_path):
    named, other = write_answers(tmp_path / "a", 1), write_answers(tmp_path / "b", 2, follows="s7")
    with pytest.raises(AnalysisError, match=r"follow study s7, those of phase 1 are of s1"):
        analyse(named, [other], tmp_path, CONFIG)
    with pytest.raises(AnalysisError, match=r"answers of phase 2, not of phase 1"):
        analyse(other, [], tmp_path, CONFIG)


def test_raters_who_leave_no_error_are_analysed_without_a_model(tmp_path):
    named = write_answers(tmp_path / "a", 1)
    same = write_answers(tmp_path / "b", 2, follows="s1", error_sd=0.0, rater_sd=0.0)
    (tmp_path / "analysis").mkdir()
    analyse(named, [same], tmp_path / "analysis", CONFIG)
    found = contracts.json_file(tmp_path / "analysis", "analysis.json")
    assert found["models"].keys() == {"mixed_difference"}
    assert found["power"] == {}
    assert any("no error is left" in reason for reason in found["left_out"])


def test_few_pairs_leave_models_out_and_say_so(tmp_path):
    named = write_answers(tmp_path / "a", 1, n_concepts=4, n_raters=2)
    few = write_answers(tmp_path / "b", 2, follows="s1", n_concepts=4, n_raters=2)
    (tmp_path / "analysis").mkdir()
    analyse(named, [few], tmp_path / "analysis", CONFIG)
    found = contracts.json_file(tmp_path / "analysis", "analysis.json")
    assert found["models"] == {}
    assert "models and power: 8 pairs, fewer than 10" in found["left_out"]
