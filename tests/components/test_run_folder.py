"""A run folder opens by contract, and says what it has when asked for what it has not."""

from pathlib import Path

import pytest

from components import contracts, records
from components.contracts import ContractError
from components.records import StageRecord
from components.run_folder import RunFolder
from tests.components.written_labels import write_labels


def _run(folder: Path, *tasks: str) -> Path:
    """A run in which each task, in order, wrote labels with its number as the chunk."""
    for number, task in enumerate(tasks):
        artifact = folder / task
        artifact.mkdir(parents=True)
        write_labels([{"chunk_id": number, "concept_id": 0, "score": 0.5}], artifact)
        written = contracts.manifest_of(artifact).model_copy(update={"location": str(artifact)})
        record = StageRecord(
            task=task, stage=task, status="FINISHED", started=f"2026-01-01T00:00:0{number}",
            key="k", why="", config={}, inputs={}, gates={}, outputs={"labels": written}, pid=1,
            import_seconds=0.5,
        )  # fmt: skip
        records.write_stage(record, folder)
    return folder


def test_the_last_artifact_of_a_contract_is_opened_unless_a_task_is_named(tmp_path):
    run = RunFolder(_run(tmp_path, "annotate", "again"))
    assert run.table(contracts.LABELS).column("chunk_id").to_pylist() == [1]
    assert run.table(contracts.LABELS, task="annotate").column("chunk_id").to_pylist() == [0]


def test_what_is_not_there_is_refused_with_what_is(tmp_path):
    run = RunFolder(_run(tmp_path, "annotate"))
    with pytest.raises(FileNotFoundError, match=r"no Tags@.*it has \['Labels of annotate'\]"):
        run.artifact(contracts.TAGS)


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a run"):
        RunFolder(tmp_path)


def test_changed_artifacts_are_not_opened(tmp_path):
    run = RunFolder(_run(tmp_path, "annotate"))
    (tmp_path / "annotate" / contracts.ROWS_FILE).write_bytes(b"other")
    with pytest.raises(ContractError, match=r"rows\.parquet"):
        run.artifact(contracts.LABELS)
