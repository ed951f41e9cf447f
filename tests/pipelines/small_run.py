"""A run that ended at its labels: a small library and three chunks, one of each of its concepts."""

from pathlib import Path

from components import contracts, records
from components.records import RunRecord, StageRecord
from tests.components.catalogue import small_library
from tests.components.written_labels import write_labels

TEXTS = ("A storm \x1b[31mat sea.", "The whale dived.", "[bold]They set sail.[/bold]")
"""One has what a terminal would obey, one what rich would."""

LABELLED = ((0, 1, 0.5), (1, 2, 0.9), (2, 0, 0.7), (2, 1, 0.8))
"""Chunk, concept, score."""


def write(
    runs: Path, run_id: str, started: str, tags=small_library.SEA, labelled_with: str = ""
) -> Path:
    """Returns the run's folder. `labelled_with`: another library's digest, in the labels."""
    store = runs / "store" / run_id
    library = small_library.write(store / "concepts", tags)
    for name in ("documents", "chunks", "labels"):
        (store / name).mkdir()
    documents = [
        {"doc_id": f"d{i}", "source": "logs", "source_version": "1", "locator": str(i),
         "domain": "sea", "licence": "CC0-1.0", "title": f"Log {i}", "split": "train",
         "text": f"Begin. {text}"}
        for i, text in enumerate(TEXTS)
    ]  # fmt: skip
    contracts.write(documents, store / "documents", contracts.DOCUMENTS)
    chunks = [
        {"chunk_id": i, "doc_id": f"d{i}", "start": 7, "end": 7 + len(text), "n_wordpieces": 4,
         "status": "ok"}
        for i, text in enumerate(TEXTS)
    ]  # fmt: skip
    contracts.write(chunks, store / "chunks", contracts.CHUNKS)
    labels = [
        {"chunk_id": chunk, "concept_id": concept, "score": score}
        for chunk, concept, score in LABELLED
    ]
    write_labels(labels, store / "labels", labelled_with or library.digest)
    outputs = {
        name: contracts.manifest_of(store / name).model_copy(update={"location": str(store / name)})
        for name in ("documents", "chunks", "concepts", "labels")
    }
    write_record(runs, run_id, started, outputs)
    return runs / run_id


def write_record(runs: Path, run_id: str, started: str, outputs: dict) -> None:
    """A run whose one task wrote these artifacts."""
    (runs / run_id / "stages").mkdir(parents=True)
    run = RunRecord(
        run_id=run_id, recipe="debug", status="FINISHED", started=started, commit="c", seed=0,
        tracking_uri="", parent_run="", pid=1,
    )  # fmt: skip
    records.write_run(run, runs / run_id)
    stage = StageRecord(
        task="annotate", stage="annotate", status="FINISHED", started=started, import_seconds=0.0,
        key="k", why="", config={}, inputs={}, gates={}, outputs=outputs, pid=1,
    )  # fmt: skip
    records.write_stage(stage, runs / run_id)
