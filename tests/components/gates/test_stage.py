"""Gates let good artifacts pass and stop each kind of bad one by a rule of its own."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from components import contracts
from components.contracts import ContractError
from components.gates.stage import check, sheets_of
from components.gates.validation import Finding, validate
from tests.components.gates.good import CONFIG, FILES, ROWS, Row, write, write_table

Change = Callable[[list[Row]], object]


def _checked(artifact: Path, tmp_path: Path) -> dict[str, object]:
    report = tmp_path / "report"
    report.mkdir()
    n_broken = check(artifact, report, CONFIG)
    contracts.verify(report, contracts.GATE_REPORT)
    body = contracts.json_file(report, "report.json")
    assert n_broken == len(cast(list[object], body["failures"]))
    return body


def _broken(report: dict[str, object]) -> dict[str, dict[str, object]]:
    failures = cast(list[dict[str, object]], report["failures"])
    return {str(failure["rule"]): failure for failure in failures}


@pytest.mark.parametrize("name", ROWS)
def test_a_good_artifact_passes_and_every_rule_says_what_it_saw(name, tmp_path):
    artifact = write(tmp_path / "artifact", name, ROWS[name]())
    report = _checked(artifact, tmp_path)
    assert report["passed"] is True, report["failures"]
    assert report["digest"] == contracts.manifest_of(artifact).digest
    assert len(cast(dict[str, str], report["checked"])) > 8


def _verdict(artifact: Path, rule: str) -> Finding:
    """What becomes of one rule of the artifact's suite, evaluated alone."""
    name = contracts.manifest_of(artifact).contract
    table = pq.read_table(artifact / contracts.ROWS_FILE)
    [found] = [
        replace(sheet, rules=(candidate,))
        for sheet in sheets_of(name, table, artifact, CONFIG)
        for candidate in sheet.rules
        if candidate.name == rule
    ]
    [finding] = validate([found], n_bad_rows=1)
    return finding


def _set(row: int, **values: object) -> Change:
    return lambda rows: rows[row].update(values)


def _everywhere(column: str, value: object) -> Change:
    return lambda rows: [row.__setitem__(column, value) for row in rows]


def _said(roles: str, content: str = "a") -> list[Row]:
    return [{"role": role, "content": content} for role in roles.split()]


BREAKS: list[tuple[str, str, Change]] = [
    ("Documents", "title_present", _everywhere("title", None)),
    ("Documents", "doc_id_unique", _set(1, doc_id="d0")),
    ("Documents", "text_not_blank", _set(2, text=" \n ")),
    ("Documents", "text_readable", _set(2, text="\x00\x01\x02 junk \ufffd")),
    ("Documents", "text_unique", _set(3, text="Text number 2.")),
    ("Documents", "text_in_one_split", _set(5, text="Text number 0. ")),
    ("Documents", "split_known", _set(0, split="dev")),
    ("Documents", "n_domains", _everywhere("domain", "mathematics")),
    ("Documents", "every_domain_in_valid", _set(2, domain="literature")),
    ("Documents", "n_documents", lambda rows: rows.pop()),
    ("Chunks", "no_gap_between_chunks", _set(1, start=6)),
    ("Chunks", "no_gap_between_chunks", _set(2, start=1)),
    ("Chunks", "no_overlap_between_chunks", _set(1, start=4)),
    ("Chunks", "chunk_not_empty", _set(3, end=0)),
    ("Chunks", "chunk_id_is_row_number", _set(3, chunk_id=9)),
    ("Chunks", "chunk_id_unique", _set(3, chunk_id=2)),
    ("Chunks", "document_in_one_piece", lambda rows: rows.insert(3, dict(rows[0]))),
    ("Chunks", "ok_chunk_not_too_long", _set(0, n_wordpieces=10)),
    ("Chunks", "long_share", _set(0, status="long")),
    ("Chunks", "segmentation_error_share", _set(0, status="segmentation_error")),
    ("Chunks", "status_known", _set(0, status="fine")),
    ("Chunks", "end_present", _set(0, end=None)),
    ("Tags", "tag_once_a_chunk", lambda rows: rows.append(dict(rows[0]))),
    ("Tags", "tag_length", _set(0, tag="x" * 61)),
    ("Tags", "kind_known", _set(0, kind="mood")),
    ("Tags", "tag_from_sample", _set(0, chunk_id=8)),
    ("Tags", "tags_per_chunk", lambda rows: rows.__delitem__(slice(0, 2))),
    ("Tags", "mean_tags_per_chunk", lambda rows: rows.__delitem__(slice(0, 2))),
    ("Tags", "n_distinct_tags", _everywhere("tag", "text")),
    ("Tags", "commonest_tag_share", _everywhere("tag", "text")),
    ("Tags", "tag_present", _everywhere("tag", None)),
    ("Concepts", "concept_id_is_row_number", _set(2, concept_id=3)),
    ("Concepts", "name_unique_case_folded", _set(1, name="ALGEBRA")),
    ("Concepts", "name_not_blank", _set(1, name=" ")),
    ("Concepts", "prevalence_within_cap", _set(1, prevalence=0.41, kind="tone")),
    ("Concepts", "prevalence_a_share", _set(1, prevalence=0.51)),
    ("Concepts", "prevalence_a_share", _set(1, prevalence=math.inf)),
    ("Concepts", "prevalence_present", _set(1, prevalence=math.nan)),
    ("Concepts", "coherence_is_a_cosine", _set(1, coherence=1.2)),
    ("Concepts", "members_not_empty", _set(1, members=[])),
    ("Concepts", "n_concepts_not_in_library_file", lambda rows: rows.pop()),
    ("Concepts", "n_concepts", lambda rows: rows.pop()),
    ("Labels", "concept_once_a_chunk", lambda rows: rows.append(dict(rows[0]))),
    ("Labels", "score_is_a_probability", _set(0, score=1.5)),
    ("Labels", "score_is_a_probability", _set(0, score=-math.inf)),
    ("Labels", "score_present", _set(0, score=math.nan)),
    ("Labels", "labels_per_chunk", lambda rows: rows.append({**rows[0], "concept_id": 2})),
    ("Labels", "n_concepts_in_use", _everywhere("concept_id", 0)),
    ("Labels", "commonest_concept_share", _everywhere("concept_id", 0)),
    ("Labels", "n_labelled_chunks", _everywhere("chunk_id", 1)),
    ("LiftedWords", "log_odds_finite", _set(0, log_odds=math.inf)),
    ("LiftedWords", "log_odds_present", _set(0, log_odds=math.nan)),
    ("LiftedWords", "support_at_least_its_floor", _set(0, support=4)),
    ("LiftedWords", "words_per_concept", lambda rows: rows.append({**rows[0], "token_id": 9})),
    ("Tokens", "no_gap_between_spans", _set(1, token_start=6)),
    ("Tokens", "no_overlap_between_spans", _set(1, token_start=4)),
    ("Tokens", "stream_tokens_without_span", _set(4, token_end=19)),
    ("Tokens", "split_is_its_spans", _set(1, split="valid")),
    ("Tokens", "chunk_packed_once", _set(1, chunk_id=0)),
    ("Tokens", "document_in_one_split", _set(4, doc_id="d0")),
    ("Tokens", "concepts_per_span", _set(0, concept_ids=[0, 1, 2])),
    ("Tokens", "concept_ids_present", _set(0, concept_ids=None)),
    ("Tokens", "unlabelled_has_no_concepts", _set(0, labelled=False)),
    ("Tokens", "labelled_share", _set(4, labelled=False)),
    ("Tokens", "n_token_domains", _everywhere("domain", "mathematics")),
    ("Messages", "conversation_id_unique", _set(1, conversation_id="c0")),
    ("Messages", "licence_present", _set(1, licence=None)),
    ("Messages", "messages_per_conversation", _set(0, messages=[])),
    ("Messages", "messages_per_conversation", _set(0, messages=_said("user assistant " * 3))),
    ("Messages", "last_role_present", _set(0, messages=None)),
    ("Messages", "assistant_has_the_last_word", _set(0, messages=_said("user assistant user"))),
    ("Messages", "role_known", _set(0, messages=_said("human assistant"))),
    ("Messages", "role_present", _set(0, messages=[{"role": None, "content": "a"}])),
    ("Messages", "roles_alternate", _set(0, messages=_said("user user assistant"))),
    ("Messages", "roles_alternate", _set(0, messages=_said("user system assistant"))),
    ("Messages", "content_present", _set(0, messages=[{"role": "user", "content": None}])),
    ("Messages", "content_not_blank", _set(2, messages=_said("user assistant", content=" \n"))),
    ("Messages", "content_readable", _set(2, messages=_said("user assistant", content="\x00a"))),
    ("Messages", "n_conversations", lambda rows: rows.pop()),
    ("Messages", "n_distinct_answers", _everywhere("messages", _said("user assistant"))),
]


@pytest.mark.parametrize(("name", "rule", "change"), BREAKS)
def test_each_fault_breaks_the_rule_named_for_it(name, rule, change, tmp_path):
    rows = ROWS[name]()
    change(rows)
    assert not _verdict(write(tmp_path / "artifact", name, rows), rule).passed


@pytest.mark.parametrize(
    ("rows", "rule"),
    [([], "n_rows"), ([{**row, "text": None} for row in ROWS["Documents"]()], "text_present")],
)
def test_empty_and_all_null_data_do_not_pass(rows, rule, tmp_path):
    report = _checked(write(tmp_path / "artifact", "Documents", rows), tmp_path)
    assert report["passed"] is False
    assert rule in _broken(report)


@pytest.mark.parametrize(
    ("name", "rule", "file", "change"),
    [
        ("Tags", "parse_failed_share", "sample.json", {"parse_failed": [1, 4]}),
        ("Tags", "parse_failed_share", "sample.json", {"tagged_by_phrases": [2]}),
        ("Tags", "n_tagged_chunks", "sample.json", {"tagged": [0, 2]}),
        ("Tokens", "largest_token_id", "tokens.json", {"vocab_size": 19}),
        ("Tokens", "split_is_whole_blocks", "tokens.json", {"block": 5}),
        ("Tokens", "padding_below_a_block", "tokens.json", {"block": 1}),
        ("Tokens", "splits_follow_each_other", "tokens.json",
         {"splits": {"train": [0, 12], "valid": [16, 20], "test": [12, 16]}}),
        ("Tokens", "split_not_empty", "tokens.json", {"splits": {"train": [0, 20]}}),
    ],
)  # fmt: skip
def test_what_the_files_beside_the_table_say_is_checked_too(name, rule, file, change, tmp_path):
    files = {file: {**cast(Row, FILES[name][file]), **change}}
    assert not _verdict(write(tmp_path / "artifact", name, ROWS[name](), files), rule).passed


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("columns_present", lambda table: table.drop(["score"])),
        ("columns_expected", lambda table: table.append_column("why", pa.array(["x"] * 5))),
        ("column_types", lambda table: table.set_column(
            2, "score", table.column("score").cast(pa.string()))),
    ],
)  # fmt: skip
def test_a_wrong_shape_is_named_and_ends_the_check(rule, change, tmp_path):
    table = pa.Table.from_pylist(ROWS["Labels"](), schema=contracts.LABELS.schema)
    artifact = write_table(tmp_path / "artifact", contracts.LABELS, change(table))
    assert list(_broken(_checked(artifact, tmp_path))) == [rule]


def test_offending_rows_are_named_by_their_ids_and_no_more_than_asked(tmp_path):
    rows = ROWS["Documents"]()
    for row in rows:
        row["split"] = "dev"
    report = tmp_path / "report"
    report.mkdir()
    artifact = write(tmp_path / "artifact", "Documents", rows)
    check(artifact, report, CONFIG.model_copy(update={"n_bad_rows": 2}))
    failure = _broken(contracts.json_file(report, "report.json"))["split_known"]
    assert failure["n_bad_rows"] == 6
    assert failure["rows"] == [{"doc_id": "d0", "split": "dev"}, {"doc_id": "d1", "split": "dev"}]


def test_the_page_shows_values_of_bad_rows_as_text_not_as_markup(tmp_path):
    rows = ROWS["Documents"]()
    rows[0]["split"] = "<script>alert(1)</script>"
    artifact = write(tmp_path / "artifact", "Documents", rows)
    _checked(artifact, tmp_path)
    page = (tmp_path / "report" / "report.html").read_text()
    assert "&lt;script&gt;alert(1)" in page
    assert "<script" not in page


def test_the_same_artifact_gives_the_same_report(tmp_path):
    artifact = write(tmp_path / "artifact", "Chunks", ROWS["Chunks"]())
    digests = set()
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        check(artifact, tmp_path / name, CONFIG)
        digests.add(contracts.manifest_of(tmp_path / name).digest)
    assert len(digests) == 1


def test_a_contract_without_a_gate_is_refused_with_those_that_have_one(tmp_path):
    (tmp_path / "scores").mkdir()
    (tmp_path / "scores" / "scores.json").write_text(json.dumps({}))
    contracts.seal(tmp_path / "scores", contracts.SCORES)
    (tmp_path / "report").mkdir()
    with pytest.raises(ContractError, match="there is no gate; gates exist for Documents, Chunks"):
        check(tmp_path / "scores", tmp_path / "report", CONFIG)
