"""Tables in several files: in order, whole for every reader, and nothing that was not sealed."""

import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from components import contracts, parts
from components.catalogue.examples import examples
from components.gates.config import CheckConfig
from components.gates.stage import check
from components.library import open_library
from components.run_folder import RunFolder
from tests.components.written_labels import write_labels
from tests.pipelines import small_run


def split(folder):
    """Every row of a table of labels in a file of its own."""
    rows = pq.read_table(folder / "rows.parquet")
    for row in range(rows.num_rows):
        pq.write_table(rows.slice(row, 1), folder / parts.name_of(row))
    contracts.seal(folder, contracts.LABELS, rows=rows.num_rows)


@pytest.fixture
def labels(tmp_path):
    """Eleven rows, so that the order of names is that of numbers only where they are padded."""
    folder = tmp_path / "labels"
    folder.mkdir()
    rows = [{"chunk_id": row, "concept_id": row % 3, "score": 0.5} for row in range(11)]
    write_labels(rows, folder)
    split(folder)
    return folder


def test_rows_come_in_the_order_of_the_parts(labels):
    assert contracts.read(labels, contracts.LABELS).column("chunk_id").to_pylist() == [*range(11)]


def test_a_part_that_was_not_sealed_is_not_read_and_one_that_is_gone_is_missed(labels):
    shutil.copy(labels / "rows.parquet", labels / parts.name_of(11))
    assert contracts.read(labels, contracts.LABELS).num_rows == 11
    (labels / parts.name_of(4)).unlink()
    with pytest.raises(contracts.ContractError, match=r"rows-000004.parquet is gone"):
        contracts.read(labels, contracts.LABELS)


def test_a_part_with_other_columns_is_refused(labels):
    pq.write_table(pa.table({"chunk_id": [1]}), labels / parts.name_of(2))
    contracts.seal(labels, contracts.LABELS, rows=11)
    with pytest.raises(contracts.ContractError, match=r"rows-000002.parquet is not Labels@1"):
        contracts.read(labels, contracts.LABELS)


def test_the_gate_sees_every_part(labels, tmp_path):
    pq.write_table(
        pq.read_table(labels / "rows.parquet"), labels / parts.name_of(9)
    )  # the first pair, twice
    contracts.seal(labels, contracts.LABELS, rows=11)
    (tmp_path / "report").mkdir()
    check(labels, tmp_path / "report", CheckConfig())
    report = contracts.json_file(tmp_path / "report", "report.json")
    assert "concept_once_a_chunk" in [found["rule"] for found in report["failures"]]


def test_examples_are_found_in_every_part(tmp_path):
    run = RunFolder(small_run.write(tmp_path, "r1", "2026-01-01T00:00:00"))
    library = open_library(run.artifact(contracts.CONCEPTS))
    before = examples(run, library, library.concepts[1], n=5)
    labels = run.artifact(contracts.LABELS)
    split(labels)
    assert len(before) == 2
    assert examples(run, library, library.concepts[1], n=5) == before
