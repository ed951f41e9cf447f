"""Artifacts are what was sealed, byte for byte, or they are refused."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from components import artifacts, chunks, contracts
from components.contracts import ContractError
from tests.components.written_labels import write_labels

LABEL = {"chunk_id": 0, "concept_id": 3, "score": 0.5}


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    write_labels([LABEL, {**LABEL, "chunk_id": 1}], tmp_path)
    return tmp_path


def test_rows_come_back_as_they_were_written(labels):
    assert contracts.read(labels, contracts.LABELS).to_pylist()[1] == {**LABEL, "chunk_id": 1}
    batches = list(contracts.stream(labels, contracts.LABELS, rows=1))
    assert [batch["chunk_id"] for batch in batches] == [[0], [1]]


def test_the_digest_depends_on_bytes_and_not_on_place(tmp_path, labels):
    other = tmp_path / "elsewhere"
    other.mkdir()
    write_labels([LABEL, {**LABEL, "chunk_id": 1}], other)
    changed = tmp_path / "changed"
    changed.mkdir()
    write_labels([LABEL], changed)
    digest = contracts.manifest_of(labels).digest
    assert contracts.manifest_of(other).digest == digest
    assert contracts.manifest_of(changed).digest != digest


def test_rows_of_other_columns_are_refused_before_anything_is_sealed(tmp_path):
    with pytest.raises(ContractError, match=r"missing columns \['score'\].*annotate"):
        write_labels([{"chunk_id": 0, "concept_id": 3}], tmp_path)
    assert not (tmp_path / "manifest.json").exists()


def test_a_folder_without_a_manifest_is_no_artifact(tmp_path):
    (tmp_path / "rows.parquet").write_text("half")
    with pytest.raises(ContractError, match="did not finish"):
        contracts.read(tmp_path, contracts.LABELS)


def test_a_file_where_a_folder_should_be_is_no_artifact(tmp_path):
    (tmp_path / "labels").write_text("a file")
    with pytest.raises(ContractError, match="labels is not an artifact"):
        contracts.read(tmp_path / "labels", contracts.LABELS)


def test_a_manifest_that_cannot_be_read_is_said_in_one_line(labels):
    (labels / "manifest.json").write_text("{")
    with pytest.raises(ContractError, match=r"is not a manifest: Invalid JSON[^\n]*$"):
        contracts.read(labels, contracts.LABELS)


def test_another_contract_is_refused_by_name(labels):
    with pytest.raises(ContractError, match=r"is Labels, not Tags@1\.0\.0.*rerun --from tag"):
        contracts.read(labels, contracts.TAGS)


def test_an_older_version_is_refused_with_both_versions(labels):
    manifest = json.loads((labels / "manifest.json").read_text())
    (labels / "manifest.json").write_text(json.dumps({**manifest, "version": "0.9.0"}))
    with pytest.raises(ContractError, match=r"Labels@0\.9\.0; this code reads Labels@1\.1\.0"):
        contracts.verify(labels, contracts.LABELS)


def test_a_truncated_file_is_refused_with_both_sizes(labels):
    rows = labels / "rows.parquet"
    size = rows.stat().st_size
    rows.write_bytes(rows.read_bytes()[:-5])
    with pytest.raises(ContractError, match=f"has {size - 5} bytes, the manifest says {size}"):
        contracts.verify(labels, contracts.LABELS)


def test_an_edited_byte_is_refused(labels):
    rows = labels / "rows.parquet"
    rows.write_bytes(rows.read_bytes()[:-1] + b"?")
    with pytest.raises(ContractError, match="was changed after it was written"):
        contracts.verify(labels, contracts.LABELS)


def test_a_file_that_is_gone_is_named(labels):
    (labels / "rows.parquet").unlink()
    with pytest.raises(ContractError, match=r"rows\.parquet is gone"):
        contracts.verify(labels, contracts.LABELS)


def test_an_edited_manifest_is_refused(labels):
    manifest = json.loads((labels / "manifest.json").read_text())
    (labels / "manifest.json").write_text(json.dumps({**manifest, "rows": 9}))
    with pytest.raises(ContractError, match="was edited"):
        contracts.verify(labels, contracts.LABELS)


def test_sealing_needs_every_file_of_the_contract(tmp_path):
    (tmp_path / "index.faiss").write_text("x")
    with pytest.raises(ContractError, match=r"missing files \['rows.parquet', 'index.json'"):
        contracts.seal(tmp_path, contracts.INDEX)


def test_large_tables_are_streamed_in_row_groups(tmp_path):
    rows = ({**LABEL, "chunk_id": row} for row in range(20_001))
    assert write_labels(rows, tmp_path) == 20_001
    assert pa.parquet.ParquetFile(tmp_path / "rows.parquet").num_row_groups == 2


def test_every_contract_has_its_kfp_type():
    for name, contract in contracts.ALL.items():
        kind = getattr(artifacts, name)
        assert (kind.schema_title, kind.schema_version) == (f"system.{name}", contract.version)


def test_chunk_text_is_cut_from_its_document(tmp_path):
    documents, cut = tmp_path / "documents", tmp_path / "chunks"
    documents.mkdir()
    cut.mkdir()
    document = {
        "doc_id": "d", "source": "s", "source_version": "1", "locator": "l", "domain": "law",
        "licence": "CC0", "title": "t", "split": "train", "text": "Grüße, Welt",
    }  # fmt: skip
    contracts.write([document], documents, contracts.DOCUMENTS)
    piece = {"doc_id": "d", "n_wordpieces": 2, "status": "ok"}
    pieces = [
        {"chunk_id": 0, "start": 0, "end": 7, **piece},
        {"chunk_id": 1, "start": 7, "end": 11, **piece},
    ]
    contracts.write(pieces, cut, contracts.CHUNKS)
    (batch,) = chunks.texts(documents, cut, rows=9)
    assert batch["text"] == ["Grüße, ", "Welt"]
    assert batch["domain"] == ["law", "law"]


def test_chunks_of_another_corpus_are_refused(tmp_path):
    documents, cut = tmp_path / "documents", tmp_path / "chunks"
    documents.mkdir()
    cut.mkdir()
    contracts.write([], documents, contracts.DOCUMENTS)
    piece = {"chunk_id": 0, "doc_id": "x", "start": 0, "end": 1, "n_wordpieces": 2, "status": "ok"}
    contracts.write([piece], cut, contracts.CHUNKS)
    with pytest.raises(ContractError, match="cut from another corpus"):
        list(chunks.texts(documents, cut, rows=9))
