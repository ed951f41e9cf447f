"""A run that got as far as its index, of the made-up language: what explain and steer open."""

import json
from pathlib import Path

from components import contracts, records
from components.records import RunRecord, StageRecord
from tests.components.explained_index import write_index
from tests.components.explained_run import write_run

RUN_ID = "demo-20260101-120000-ab12"
NAMES = ("Storms", "Love", "Prime numbers", "Engines", "King", "Trees")


def write(runs: Path) -> Path:
    """Returns the run's folder. Its checkpoint is that of mid-training and of fine-tuning."""
    made = write_run(runs / "store")
    listed = json.loads((made.checkpoint / "concepts.json").read_text())
    for concept, name in zip(listed["concepts"], NAMES, strict=True):
        concept["name"] = name
    (made.checkpoint / "concepts.json").write_text(json.dumps(listed))
    contracts.seal(made.checkpoint, contracts.CHECKPOINT)
    index = runs / "store" / "index"
    index.mkdir()
    write_index(made, index)
    folder = runs / RUN_ID
    (folder / "stages").mkdir(parents=True)
    started = "2026-01-01T12:00:00+00:00"
    records.write_run(
        RunRecord(
            run_id=RUN_ID, recipe="demo", status="FINISHED", started=started, commit="c", seed=0,
            tracking_uri="", parent_run="", pid=1,
        ),
        folder,
    )  # fmt: skip
    for task, name, where in (
        ("midtrain", "midtrained", made.checkpoint), ("build", "index", index),
        ("finetune", "finetuned", made.checkpoint),
    ):  # fmt: skip
        manifest = contracts.manifest_of(where).model_copy(update={"location": str(where)})
        stage = StageRecord(
            task=task, stage=task, status="FINISHED", started=started, import_seconds=0.0,
            key="k", why="", config={}, inputs={}, gates={}, outputs={name: manifest}, pid=1,
        )  # fmt: skip
        records.write_stage(stage, folder)
    return folder
