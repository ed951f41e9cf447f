"""The whole life cycle on 40 documents, through kfp.local, as `clearstory run debug` does it."""

import builtins
import json
import logging

from mlflow.tracking import MlflowClient

from components import contracts
from pipelines import local, recipes
from pipelines.again import forced_from, only_stage
from tests.pipelines.conftest import Walk


def mlflow_runs(walk: Walk) -> dict:
    client = MlflowClient(tracking_uri=walk.settings.tracking_uri)
    experiment = client.get_experiment_by_name(walk.settings.experiment)
    wanted = f"tags.`clearstory.run_id` = '{walk.settings.run_id}'"
    found = client.search_runs([experiment.experiment_id], wanted, max_results=200)
    return {run.data.tags["clearstory.task"]: run for run in found}


def test_every_stage_finished_and_wrote_what_its_contract_says(walk):
    assert walk.record.status == "FINISHED"
    assert {stage.status for stage in walk.stages.values()} == {"FINISHED"}
    for stage in walk.stages.values():
        for name, manifest in stage.outputs.items():
            contracts.verify(walk.output(stage.task, name), contracts.ALL[manifest.contract])


def test_every_contract_of_the_life_cycle_was_written(walk):
    written = {m.contract for stage in walk.stages.values() for m in stage.outputs.values()}
    of_the_study = {contracts.STUDY, contracts.ANSWERS, contracts.STUDY_ANALYSIS}
    assert written == set(contracts.ALL) - {each.name for each in of_the_study}


def test_only_manifests_travel_between_tasks(walk):
    bodies = [path for path in (walk.folder / "kfp").rglob("*") if path.is_file()]
    sizes = {path.name: path.stat().st_size for path in bodies if path.name != "page"}
    assert max(sizes.values()) < 20_000


def test_the_parent_and_every_child_are_closed_in_mlflow(walk):
    runs = mlflow_runs(walk)
    assert set(runs) == {"pipeline", *walk.stages}
    assert {run.info.status for run in runs.values()} == {"FINISHED"}
    parent = runs.pop("pipeline").info.run_id
    assert {run.data.tags["mlflow.parentRunId"] for run in runs.values()} == {parent}


def test_a_child_shows_config_inputs_and_digests(walk):
    run = mlflow_runs(walk)["train"]
    assert run.data.params["training.seed"] == str(recipes.debug().training.training.seed)
    names = {item.dataset.name for item in run.inputs.dataset_inputs}
    assert {"Tokens@1.0.0", "Concepts@1.1.0"} <= names
    checkpoint = walk.stages["train"].outputs["checkpoint"]
    assert run.data.tags["output.checkpoint"] == checkpoint.digest
    assert run.data.metrics["nll_nats"] > 0


def test_kfp_leaves_output_as_it_was(walk):
    assert builtins.print.__module__ == "builtins"
    closed = [
        handler for handler in logging.getLogger().handlers
        if isinstance(handler, logging.StreamHandler)
        and handler.stream is not None and handler.stream.closed
    ]  # fmt: skip
    assert closed == []


def test_the_report_is_an_artifact_of_the_parent(walk):
    client = MlflowClient(tracking_uri=walk.settings.tracking_uri)
    files = {file.path for file in client.list_artifacts(walk.record.parent_run)}
    assert {"report.html", "recipe.json", "pipeline.yaml", "environment.txt"} <= files


def test_the_checkpoint_is_a_registered_candidate_with_its_scores(walk):
    client = MlflowClient(tracking_uri=walk.settings.tracking_uri)
    version = json.loads((walk.output("promote", "model_version") / "version.json").read_text())
    found = client.get_model_version_by_alias(version["name"], "candidate")
    midtrained = walk.stages["midtrain"].outputs["midtrained"]
    assert found.tags["checkpoint_digest"] == midtrained.digest
    assert "nats" in found.description


def test_a_stage_costs_little_beside_its_own_work(walk):
    """Not a timed assert of speed: the bound is forty times what is measured."""
    assert max(stage.overhead_seconds for stage in walk.stages.values()) < 12


def test_forcing_a_stage_forces_all_that_reads_from_it_and_nothing_else(walk):
    forced = forced_from(walk.folder, "steer")
    assert forced == ("report", "steer")
    assert "ingest" not in forced_from(walk.folder, "pack")
    assert {"train", "midtrain", "evaluate", "report"} <= set(forced_from(walk.folder, "pack"))


def test_one_stage_alone_runs_again_on_the_artifacts_of_its_run(walk):
    again = walk.settings.model_copy(
        update={
            "run_id": local.new_run_id("debug"), "origin": walk.settings.run_id, "force": ("fit",),
        }
    )  # fmt: skip
    record = local.run(only_stage(walk.folder, "fit"), recipes.debug(), again)
    from components import records

    (stage,) = records.read_stages(again.run_folder)
    assert (record.status, stage.task, stage.why) == (
        "FINISHED", "fit", "it was asked to run again",
    )  # fmt: skip
    before = walk.stages["fit"].outputs["scaling_fit"]
    assert stage.outputs["scaling_fit"].digest == before.digest
