"""How an artifact was made stays beside it and leads back to all that is behind it."""

from pathlib import Path

from components.provenance import MADE_FILE, Provenance, trail


def made(folder: Path, task: str, started: str, inputs: tuple[str, ...]) -> Path:
    output = folder / "output"
    output.mkdir(parents=True)
    fact = Provenance(
        task=task, run_id="r", commit="c", host="h", started=started, seconds=2.5, inputs=inputs
    )
    (folder / MADE_FILE).write_text(fact.model_dump_json())
    return output


def test_the_trail_names_every_execution_once_in_order(tmp_path):
    ingest = made(tmp_path / "ingest", "ingest", "2026-01-01T00:00:00", ())
    chunk = made(tmp_path / "chunk", "chunk", "2026-01-01T00:00:03", (str(ingest),))
    pack = made(tmp_path / "pack", "pack", "2026-01-01T00:00:06", (str(chunk), str(ingest)))
    outside = tmp_path / "elsewhere" / "documents"
    assert [execution.task for execution in trail([pack, outside])] == ["ingest", "chunk", "pack"]
