"""Running part of an earlier run again, from the records it left."""

import json
from pathlib import Path

from kfp import dsl
from kfp.dsl.base_component import BaseComponent
from kfp.dsl.graph_component import GraphComponent
from kfp.dsl.pipeline_channel import PipelineChannel

import components.atlas.component as atlas
from components import records
from components.attribution.component import attribute
from components.contracts import Manifest
from components.corpus.component import converse, ingest
from components.evaluation.component import evaluate
from components.finetuning.component import finetune
from components.gates.component import check
from components.index.component import build
from components.midtraining.component import midtrain
from components.naming.component import name
from components.packing.component import lift, pack
from components.records import StageRecord
from components.registry.component import promote
from components.report.component import report
from components.scaling.component import fit, measure
from components.steering.component import steer
from components.training.component import train
from pipelines.recipes import nearest
from pipelines.resources import LARGE, place

COMPONENTS: dict[str, BaseComponent] = {
    "ingest": ingest, "check": check, "chunk": atlas.chunk, "embed": atlas.embed,
    "tag": atlas.tag, "canonicalise": atlas.canonicalise, "learn": atlas.learn,
    "annotate": atlas.annotate, "judge": atlas.judge, "pack": pack, "lift": lift, "train": train,
    "midtrain": midtrain,
    "evaluate": evaluate, "measure": measure, "fit": fit, "build": build, "name": name,
    "attribute": attribute,
    "steer": steer, "converse": converse, "finetune": finetune, "promote": promote,
    "report": report,
}  # fmt: skip
"""The component of every stage, by the name of the stage's function."""


def forced_from(run_folder: Path, stage: str) -> tuple[str, ...]:
    """The tasks of a run that are `stage` or read, however far down, what it wrote."""
    stages = records.read_stages(run_folder)
    forced = {found.task for found in _tasks_of(stages, stage)}
    while True:
        made = {
            manifest.location
            for record in stages if record.task in forced
            for manifest in record.outputs.values()
        }  # fmt: skip
        reading = {record.task for record in stages if made & _locations_read(record)}
        if reading <= forced:
            return tuple(sorted(forced))
        forced |= reading


def only_stage(run_folder: Path, stage: str) -> GraphComponent:
    """A pipeline of one task, fed with the artifacts that the earlier run gave it."""
    record, *more = _tasks_of(records.read_stages(run_folder), stage)
    if more:
        tasks = [found.task for found in (record, *more)]
        raise ValueError(f"{stage} has {len(tasks)} tasks; name one of {', '.join(tasks)}.")
    component = COMPONENTS[record.stage]
    bodies = run_folder / "bodies" / record.task

    @dsl.pipeline(name=f"only-{record.stage}")
    def dag(settings: str) -> None:
        config = json.dumps(record.config)
        given = {name: found for name, found in record.inputs.items() if found}
        fed = {name: _imported(found, bodies / name) for name, found in given.items()}
        fed |= {
            name: _imported([_gate_for(name, record)], bodies / name)
            for name in component.component_spec.inputs
            if name.endswith("checked")
        }
        place(component(**fed, config=config, settings=settings), LARGE)

    return dag


def _imported(manifests: list[Manifest], body: Path) -> PipelineChannel:
    """Artifacts as a task's output: KFP's importer reads the manifests from files."""
    body.mkdir(parents=True, exist_ok=True)
    paths = []
    for row, manifest in enumerate(manifests):
        path = body / f"{row}.json"
        path.write_text(manifest.model_dump_json(indent=1))
        paths.append(str(path))
    if len(paths) == 1:
        return _imported_one(paths[0])
    with dsl.ParallelFor(items=paths, parallelism=1) as uri:
        one = _imported_one(uri)
    return dsl.Collected(one)


def _imported_one(uri: str | PipelineChannel) -> PipelineChannel:
    """Plain `Artifact`: the local importer knows no other types, and any input takes it."""
    return dsl.importer(artifact_uri=uri, artifact_class=dsl.Artifact, reimport=False).output


def _gate_for(name: str, record: StageRecord) -> Manifest:
    """`checked` is the only report of its task; `labels_checked` is the one about Labels."""
    if name == "checked":
        (manifest,) = record.gates.values()
        return manifest
    return record.gates[name.removesuffix("_checked").capitalize()]


def _tasks_of(stages: list[StageRecord], stage: str) -> list[StageRecord]:
    found = [record for record in stages if stage in (record.stage, record.task)]
    if not found:
        known = sorted({record.stage for record in stages} | {record.task for record in stages})
        raise ValueError(f"The run has no stage {stage!r}. {nearest(stage, known)}")
    return found


def _locations_read(record: StageRecord) -> set[str]:
    read = [*record.gates.values(), *(item for items in record.inputs.values() for item in items)]
    return {manifest.location for manifest in read}
