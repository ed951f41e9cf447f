"""The walk: the whole DAG on 40 documents, once for all tests that look at what it left."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from components import records, tracking
from components.records import RunRecord, StageRecord
from components.settings import Settings
from pipelines import local, recipes
from pipelines.lifecycle import lifecycle
from tests.pipelines import explained_runs as explained_runs_files


@dataclass(frozen=True)
class Walk:
    """A finished run of `debug`."""

    settings: Settings
    record: RunRecord
    stages: dict[str, StageRecord]

    @property
    def folder(self) -> Path:
        return self.settings.run_folder

    def output(self, task: str, name: str) -> Path:
        """Where an artifact of the walk lies."""
        return Path(self.stages[task].outputs[name].location)


def settings_in(folder: Path, recipe: str = "debug") -> Settings:
    """Settings of a run that lives in `folder` alone."""
    return Settings(
        run_id=local.new_run_id(recipe), recipe=recipe, pipeline="lifecycle", runs=str(folder),
        cache=str(folder / "cache"), tracking_uri=tracking.default_uri(folder),
        experiment="clearstory", commit="test", resume_command="clearstory run debug",
    )  # fmt: skip


@pytest.fixture(scope="session")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Walk:
    settings = settings_in(tmp_path_factory.mktemp("walk"))
    recipe = recipes.debug()
    record = local.run(lifecycle(recipe), recipe, settings)
    stages = {stage.task: stage for stage in records.read_stages(settings.run_folder)}
    return Walk(settings, record, stages)


@pytest.fixture(scope="session")
def explained_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs whose only one got as far as its index."""
    runs = tmp_path_factory.mktemp("explained")
    explained_runs_files.write(runs)
    return runs
