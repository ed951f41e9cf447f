"""The runner around a stage: reuse by digest, gates, failures recorded, nothing half written."""

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from components import contracts, records, store
from components.contracts import ContractError
from components.launch import RankError
from components.runner import GateError, run_stage
from components.settings import Settings
from model.config import Config
from model.events import Event, Events
from tests.components.written_labels import write_labels


class NumberConfig(Config):
    n: int


@dataclass
class Body:
    path: str
    schema_title: str


def label(tags: Path, labels: Path, config: NumberConfig) -> int:
    n_tags = contracts.read(tags, contracts.TAGS).num_rows
    rows = [{"chunk_id": row, "concept_id": config.n, "score": 1.0} for row in range(n_tags)]
    return write_labels(rows, labels)


def gather(tags: list[Path], labels: Path, config: NumberConfig) -> int:
    rows = [{"chunk_id": row, "concept_id": config.n, "score": 1.0} for row in range(len(tags))]
    return write_labels(rows, labels)


def shout(labels: Path, config: NumberConfig, events: Events) -> None:
    events(Event(step=3, total_steps=4, metrics={"nll_nats": 1.5}))
    write_labels([], labels)


def explode(labels: Path, config: NumberConfig) -> None:
    (labels / "half.bin").write_text("half")
    raise ValueError(f"n is {config.n}")


def check(tags: Path, report: Path, config: NumberConfig) -> None:
    passed = config.n == 0
    facts = {
        "contract": "Tags", "digest": contracts.manifest_of(tags).digest, "passed": passed,
        "failures": [{"rule": "tags_short", "column": "tag", "observed": 91, "rows": [7]}],
    }  # fmt: skip
    (report / "report.json").write_text(json.dumps(facts))
    (report / "report.html").write_text("<p>")
    contracts.seal(report, contracts.GATE_REPORT)


@pytest.fixture(scope="module")
def tracking_uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('tracking')}/mlflow.db"


@pytest.fixture
def settings(tmp_path: Path, tracking_uri: str) -> Settings:
    return Settings(
        run_id=tmp_path.name, recipe="debug", pipeline="lifecycle", runs=str(tmp_path / "runs"),
        cache=str(tmp_path / "cache"), tracking_uri=tracking_uri,
        experiment="clearstory", commit="abc",
        resume_command="clearstory run debug",
    )  # fmt: skip


@pytest.fixture
def tags(tmp_path: Path) -> Body:
    folder = tmp_path / "made" / "tags"
    folder.mkdir(parents=True)
    (folder / "sample.json").write_text("{}")
    rows = [
        {"chunk_id": 0, "tag": "law", "kind": "content"},
        {"chunk_id": 1, "tag": "sea", "kind": "content"},
    ]
    contracts.write(rows, folder, contracts.TAGS)
    return body_of(folder, tmp_path / "tags-body")


def body_of(folder: Path, path: Path) -> Body:
    manifest = contracts.manifest_of(folder).model_copy(update={"location": str(folder)})
    path.write_text(manifest.model_dump_json())
    return Body(str(path), f"system.{manifest.contract}")


def out(tmp_path: Path, title: str) -> Body:
    return Body(str(tmp_path / "out" / title), f"system.{title}")


def run_label(tmp_path: Path, tags: Body, settings: Settings, n: int) -> records.StageRecord:
    run_stage(
        label, {"tags": tags}, [], out(tmp_path, "Labels"), NumberConfig(n=n),
        settings.model_dump_json(),
    )  # fmt: skip
    return records.read_stages(settings.run_folder)[0]


def test_the_second_run_reuses_and_another_number_does_not(tmp_path, tags, settings):
    assert run_label(tmp_path, tags, settings, n=1).status == "FINISHED"
    assert run_label(tmp_path, tags, settings, n=1).status == "REUSED"
    elsewhere = settings.model_copy(update={"run_id": "another-run"})
    other = run_label(tmp_path, tags, elsewhere, n=2)
    assert other.status == "FINISHED"
    assert "config.n: 1 -> 2" in other.why


def test_a_changed_byte_in_the_store_makes_the_stage_run_again_and_names_the_file(
    tmp_path, tags, settings
):
    first = run_label(tmp_path, tags, settings, n=1)
    rows = Path(first.outputs["labels"].location) / "rows.parquet"
    rows.write_bytes(rows.read_bytes()[:-1] + b"x")
    again = run_label(tmp_path, tags, settings, n=1)
    assert again.status == "FINISHED"
    assert str(rows) in again.why
    assert contracts.read(rows.parent, contracts.LABELS).num_rows == 2


def test_force_runs_again(tmp_path, tags, settings):
    run_label(tmp_path, tags, settings, n=1)
    forced = settings.model_copy(update={"force": ("label",)})
    assert run_label(tmp_path, tags, forced, n=1).why == "it was asked to run again"


def test_only_a_manifest_travels(tmp_path, tags, settings):
    run_label(tmp_path, tags, settings, n=1)
    body = contracts.Manifest.model_validate_json(Path(out(tmp_path, "Labels").path).read_text())
    assert contracts.verify(Path(body.location), contracts.LABELS).rows == body.rows == 2


def test_an_input_edited_after_it_was_written_is_refused(tmp_path, tags, settings):
    folder = tmp_path / "made" / "tags"
    (folder / "sample.json").write_text("[]")
    with pytest.raises(ContractError, match=r"sample.json.*rerun --from tag"):
        run_label(tmp_path, tags, settings, n=1)


def test_an_input_in_s3_comes_as_its_manifest_alone_and_a_stage_that_reads_folders_says_so(
    tmp_path, tags, settings
):
    manifest = contracts.Manifest.model_validate_json(Path(tags.path).read_text())
    remote = manifest.model_copy(update={"location": "s3://corpus/tags"})
    Path(tags.path).write_text(remote.model_dump_json())
    folder = store.Store(settings.store_root).opened(remote)
    assert [path.name for path in folder.iterdir()] == ["manifest.json"]
    assert contracts.manifest_of(folder) == remote
    with pytest.raises(ContractError, match="files of this Tags lie at s3://corpus/tags, and only"):
        run_label(tmp_path, tags, settings, n=1)


def test_a_failed_stage_leaves_its_traceback_and_no_half_artifact(tmp_path, settings):
    with pytest.raises(ValueError, match="n is 7"):
        run_stage(
            explode, {}, [], out(tmp_path, "Labels"), NumberConfig(n=7), settings.model_dump_json()
        )
    (record,) = records.read_stages(settings.run_folder)
    assert record.status == "FAILED"
    assert "n is 7" in record.error
    assert not list((settings.store_root / "attempts").iterdir())
    assert not (settings.store_root / "stages").exists()


def test_a_killed_stage_is_recorded_as_killed(tmp_path, settings):
    def stopped(labels: Path, config: NumberConfig) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_stage(
            stopped, {}, [], out(tmp_path, "Labels"), NumberConfig(n=1), settings.model_dump_json()
        )
    assert records.read_stages(settings.run_folder)[0].status == "KILLED"


def test_events_reach_the_run_folder(tmp_path, settings):
    run_stage(shout, {}, [], out(tmp_path, "Labels"), NumberConfig(n=1), settings.model_dump_json())
    line = json.loads((settings.run_folder / "events" / "shout.jsonl").read_text())
    assert line == {"step": 3, "total_steps": 4, "metrics": {"nll_nats": 1.5}}


def test_a_gate_that_fails_stops_the_run_and_names_rule_value_and_rows(tmp_path, tags, settings):
    report = out(tmp_path, "GateReport")
    with pytest.raises(GateError, match=r"tags_short on tag: found 91, rows \[7\]"):
        run_stage(check, {"tags": tags}, [], report, NumberConfig(n=1), settings.model_dump_json())
    assert records.read_stages(settings.run_folder)[0].status == "FAILED"
    settings = settings.model_copy(update={"run_id": f"{settings.run_id}-next"})
    with pytest.raises(GateError, match="tags_short"):
        run_stage(
            label, {"tags": tags}, [report], out(tmp_path, "Labels"), NumberConfig(n=1),
            settings.model_dump_json(),
        )  # fmt: skip


def test_a_gate_report_of_other_data_is_refused(tmp_path, tags, settings):
    report = out(tmp_path, "GateReport")
    run_stage(check, {"tags": tags}, [], report, NumberConfig(n=0), settings.model_dump_json())
    folder = tmp_path / "made" / "tags"
    contracts.write([{"chunk_id": 5, "tag": "new", "kind": "content"}], folder, contracts.TAGS)
    changed = body_of(folder, tmp_path / "changed")
    with pytest.raises(GateError, match="changed after it was checked"):
        run_stage(
            label, {"tags": changed}, [report], out(tmp_path, "Labels"), NumberConfig(n=1),
            settings.model_dump_json(),
        )  # fmt: skip


def test_attempts_of_a_key_wait_for_each_other(tmp_path):
    from multiprocessing import get_context

    from components.keys import key_of

    key = key_of("label", __name__, NumberConfig(n=1), {}, {})
    folder = store.Store(tmp_path)
    context = get_context("fork")
    with folder.lease(key):
        waiter = context.Process(target=_take_lease, args=(tmp_path, key))
        waiter.start()
        waiter.join(timeout=0.2)
        assert waiter.is_alive()
    waiter.join(timeout=20)
    assert waiter.exitcode == 0


def _take_lease(root: Path, key: object) -> None:
    with store.Store(root).lease(key):
        pass


def test_a_failed_stage_is_failed_in_mlflow_with_its_traceback(tmp_path, settings):
    from mlflow.tracking import MlflowClient

    with pytest.raises(ValueError, match="n is 3"):
        run_stage(
            explode, {}, [], out(tmp_path, "Labels"), NumberConfig(n=3), settings.model_dump_json()
        )
    client = MlflowClient(tracking_uri=settings.tracking_uri)
    experiment = client.get_experiment_by_name(settings.experiment)
    wanted = f"tags.`clearstory.run_id` = '{settings.run_id}'"
    runs = {
        run.data.tags["clearstory.task"]: run
        for run in client.search_runs([experiment.experiment_id], wanted)
    }
    assert runs["explode"].info.status == "FAILED"
    assert runs["explode"].data.tags["mlflow.parentRunId"] == runs["pipeline"].info.run_id
    files = [file.path for file in client.list_artifacts(runs["explode"].info.run_id)]
    assert {"traceback.txt", "config.json", "key.json"} <= set(files)


def test_a_task_does_not_begin_once_the_run_was_stopped(tmp_path, settings):
    settings.run_folder.mkdir(parents=True)
    records.cancel(settings.run_folder)
    with pytest.raises(SystemExit, match="shout did not begin"):
        run_stage(
            shout, {}, [], out(tmp_path, "Labels"), NumberConfig(n=1), settings.model_dump_json()
        )
    assert not (settings.store_root / "stages").exists()


def climb(labels: Path, config: NumberConfig, events: Events, scratch: Path) -> None:
    """Takes a step an attempt, and is killed before the third."""
    steps = scratch / "savepoints" / "steps"
    steps.parent.mkdir(exist_ok=True)
    done = int(steps.read_text()) if steps.exists() else 0
    (scratch / "kept").mkdir(exist_ok=True)
    (scratch / "kept" / f"step-{done}").touch()
    steps.write_text(str(done + 1))
    if done < 2:
        raise KeyboardInterrupt(f"after step {done + 1}")
    events(Event(step=done, total_steps=3, message=f"went on after step {done}"))
    write_labels([], labels)


def test_scratch_outlives_a_killed_attempt_and_goes_after_the_commit(tmp_path, settings):
    for attempt in range(3):
        mine = settings.model_copy(update={"run_id": f"{settings.run_id}-{attempt}"})
        with pytest.raises(KeyboardInterrupt) if attempt < 2 else contextlib.nullcontext():
            run_stage(
                climb, {}, [], out(tmp_path, "Labels"), NumberConfig(n=1), mine.model_dump_json()
            )
    progress = (mine.run_folder / "progress.jsonl").read_text()
    assert "went on after step 2" in progress
    (scratch,) = (settings.store_root / "scratch").iterdir()
    assert sorted(path.name for path in scratch.iterdir()) == ["kept", "key.json"]
    assert len(list((scratch / "kept").iterdir())) == 3


def test_what_another_key_left_behind_is_said_and_not_gone_on_from(tmp_path, settings):
    for number in (1, 2):
        mine = settings.model_copy(update={"run_id": f"{settings.run_id}-{number}"})
        with pytest.raises(KeyboardInterrupt, match="after step 1"):
            run_stage(
                climb, {}, [], out(tmp_path, "Labels"), NumberConfig(n=number),
                mine.model_dump_json(),
            )  # fmt: skip
    progress = (mine.run_folder / "progress.jsonl").read_text()
    assert "a killed attempt at another key left" in progress
    assert "config.n: 1 -> 2" in progress


def test_the_exit_code_of_ranks_is_recorded(tmp_path, settings):
    def diverged(labels: Path, config: NumberConfig) -> None:
        raise RankError("not finite", 76)

    with pytest.raises(RankError):
        run_stage(
            diverged, {}, [], out(tmp_path, "Labels"), NumberConfig(n=1), settings.model_dump_json()
        )
    assert records.read_stages(settings.run_folder)[0].exit_code == 76


def test_an_input_may_be_no_artifact_and_one_more_is_another_key(tags, settings, tmp_path):
    rows = []
    for number, given in enumerate(([], [tags])):
        output = Body(str(tmp_path / f"out{number}"), "system.Labels")
        run_stage(
            gather, {"tags": given}, [], output, NumberConfig(n=0), settings.model_dump_json(),
            task=f"gather-{number}",
        )  # fmt: skip
        rows.append(json.loads(Path(output.path).read_text())["rows"])
    assert rows == [0, 1]
    records_of = {record.task: record for record in records.read_stages(settings.run_folder)}
    assert records_of["gather-0"].inputs == {"tags": []}
