"""The page tells the run, holds nothing that needs a network, and trusts no text from data."""

import json
import re
from pathlib import Path

import pytest

from components import contracts
from components.contracts import ContractError
from components.pages import escape
from components.report.config import ReportConfig
from components.report.stage import report, show
from tests.components.report import story

CONFIG = ReportConfig(recipe="debug", n_concepts=3, n_steered=2, map="pca")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _told(tmp_path_factory.mktemp("story"))


def _told(folder: Path) -> Path:
    paths = story.write(folder)
    (folder / "report").mkdir()
    finetuning = [story.write_finetuning(folder / "finetuning")]
    report(*paths.values(), finetuning, folder / "report", CONFIG)
    return folder / "report"


def test_it_is_a_report_and_says_what_it_was_made_from(told):
    contracts.verify(told, contracts.REPORT)
    facts = contracts.json_file(told, "report.json")
    assert facts["recipe"] == "debug"
    digest = contracts.manifest_of(told.parent / "scores").digest
    assert facts["inputs"]["scores"] == digest
    assert digest[:16] in (told / "report.html").read_text()


def test_every_part_of_the_run_has_its_section(told):
    page = (told / "report.html").read_text()
    sections = re.findall(r'<section id="(\w+)">', page)
    assert sections == [
        "corpus", "library", "making", "judged", "learning", "scores", "finetuning", "traces",
        "steering",
        "scaling", "cost", "lineage",
    ]  # fmt: skip
    assert set(re.findall(r'<a href="#(\w+)">', page)) == set(sections)


def test_shaded_inputs_come_with_what_they_miss_and_what_masking_them_does(told):
    page = (told / "report.html").read_text()
    assert "n = 8 tokens, 1 of them not within 2%" in page
    assert "masking the top 3 inputs" in page
    assert "0.83 [0.73, 0.93]" in page
    assert "deleted at random" in page


def test_concepts_come_with_what_removing_them_does_and_the_exact_is_kept_apart(told):
    page = (told / "report.html").read_text()
    assert "the worst of 18 pairs" in page
    assert "4.0e-06 at most" in page
    assert "removed after layer 3: unknown" in page
    assert "of 7 tried" in page
    assert "12.5%" in page


def test_a_run_without_fine_tuning_tells_nothing_of_it(tmp_path):
    paths = story.write(tmp_path)
    (tmp_path / "report").mkdir()
    report(*paths.values(), [], tmp_path / "report", CONFIG)
    assert 'id="finetuning"' not in (tmp_path / "report" / "report.html").read_text()


def test_the_page_needs_nothing_from_anywhere(told):
    page = (told / "report.html").read_text()
    assert not re.findall(r'(?:src|href)="(?!#|data:)', page)
    assert "http" not in page
    assert "<script" not in page
    assert "@import" not in page


def test_markup_in_titles_texts_names_and_notes_is_shown_as_text(told):
    page = (told / "report.html").read_text()
    assert page.count("&lt;script&gt;alert") > 5
    assert 'alert("x")' not in page


@pytest.mark.parametrize(
    "said",
    [
        "4.00 × 10¹²",  # FLOPs of both phases
        "[4.365, 4.635]",  # the interval of the held-out loss
        "unigram",
        "its AUC is 0.88 [0.625, 1.125]",  # what the judge is worth
        "Voyage 0",  # a traced text
        "literature-source · CC0-1.0",  # source and licence of a similar training chunk
        "3 sizes: a vertex has no interval",  # the caveat of the scaling fit
        "amplified, 4",
        "any strength: 1 of 3 (33%; by chance 50%; 2 texts each)",  # silent concepts
        "suppressed as a group",
        "amplified, before",
        "[4.875, 5.375]",  # the interval of the loss on answers before fine-tuning
        ">5 concepts<",  # what is left of nine clusters
        "on 1 to 2 chunks, fewer than needed",  # why clusters were dropped
        "two directions of most variance",  # how the map was made
        "Robustness",  # a condition this page was not written for
    ],
)
def test_what_a_reader_looks_for_is_there(told, said):
    assert said in (told / "report.html").read_text()


def test_the_row_of_k_that_was_taken_is_marked(told):
    page = (told / "report.html").read_text()
    rows = re.findall(r"<tr>(.*?)</tr>", page[page.index('id="making"') :])
    (taken,) = [row for row in rows if "taken" in row]
    assert taken.startswith('<td class="number">9</td>')


def test_each_concept_stands_where_its_own_centroid_is(told):
    """Centroids lie on an arc in the order of the names, labels order the concepts otherwise."""
    page = (told / "report.html").read_text()
    found = re.findall(r'<g class="dot"><title>(.*?) · .*?<path d="M([\d.]+) ', page)
    left_to_right = [name for name, _ in sorted(found, key=lambda dot: float(dot[1]))]
    names = [str(escape(name)) for name in story.NAMES]
    assert left_to_right in (names, names[::-1])


def test_the_same_artifacts_make_the_same_bytes(told, tmp_path):
    again = _told(tmp_path / "elsewhere")
    assert contracts.manifest_of(again).digest == contracts.manifest_of(told).digest


def test_nothing_is_told_of_files_that_were_changed(tmp_path):
    paths = story.write(tmp_path)
    (tmp_path / "report").mkdir()
    scores = json.loads((paths["scores"] / "scores.json").read_text())
    scores["bits_per_byte"]["value"] = 0.1
    (paths["scores"] / "scores.json").write_text(json.dumps(scores))
    with pytest.raises(ContractError, match=r"scores\.json"):
        report(*paths.values(), [], tmp_path / "report", CONFIG)


def test_scores_without_a_loss_are_refused_with_the_names_there_are(tmp_path):
    paths = story.write(tmp_path)
    scores = json.loads((paths["scores"] / "scores.json").read_text())
    (paths["scores"] / "manifest.json").unlink()
    left = {name: score for name, score in scores.items() if not name.startswith("unigram")}
    (paths["scores"] / "scores.json").write_text(json.dumps(left))
    contracts.seal(paths["scores"], contracts.SCORES)
    (tmp_path / "report").mkdir()
    with pytest.raises(ContractError, match="hold no unigram_nats_per_token"):
        report(*paths.values(), [], tmp_path / "report", CONFIG)


def test_the_page_is_copied_to_where_kfp_shows_it(told, tmp_path):
    body = tmp_path / "body"
    manifest = contracts.manifest_of(told).model_copy(update={"location": str(told)})
    body.write_text(manifest.model_dump_json())
    show(str(body), str(tmp_path / "deep" / "page"))
    assert (tmp_path / "deep" / "page").read_bytes() == (told / "report.html").read_bytes()
