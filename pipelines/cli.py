"""`clearstory`: plan, fetch, run, anneal, rerun, status, ui, concepts, study, generate, explain,
steer, serve."""

import json
import logging
import os
import shlex
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from components import fetch as packages
from components import records
from components.settings import Settings
from pipelines import (
    atlas_cli,
    concepts_cli,
    explain_cli,
    generate_cli,
    recipes,
    serve_cli,
    study_cli,
)
from pipelines.earlier import RunsOption, chosen_run
from pipelines.exits import INTERRUPTED, NO, guarded, stop
from pipelines.recipe import Recipe, require_local

app = typer.Typer(
    help="The life cycle of inherently interpretable language models.",
    no_args_is_help=True, pretty_exceptions_enable=False,
)  # fmt: skip
app.add_typer(concepts_cli.app, name="concepts")
app.add_typer(study_cli.app, name="study")
if TYPE_CHECKING:  # kfp and MLflow take seconds to import, and most commands need neither
    from kfp.dsl.graph_component import GraphComponent

_EXPERIMENT = "clearstory"
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change one number, e.g. training.training.seed=1."
    ),
]
RecipeArgument = Annotated[str, typer.Argument(help="A recipe of pipelines/recipes.py.")]
app.command()(atlas_cli.distil)
app.command()(generate_cli.generate)
app.command()(explain_cli.explain)
app.command()(explain_cli.steer)
app.command()(serve_cli.serve)


@app.command()
def plan(
    recipe: RecipeArgument = "demo",
    hardware: Annotated[
        str, typer.Option("--hardware", help="A device of pipelines/hardware.json.")
    ] = "",
    ranks: Annotated[
        int, typer.Option("--ranks", min=0, help="Ranks; 0: as the recipe has it.")
    ] = 0,
    zero: Annotated[
        int, typer.Option("--zero", min=-1, max=3, help="ZeRO stage; -1: as the recipe has it.")
    ] = -1,
    settings_of: SetOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="For a program to read.")] = False,
    chunks: atlas_cli.ChunksOption = 0.0,
    encoder: atlas_cli.EncoderOption = "",
    recipe_of_atlas: atlas_cli.RecipeOption = "steerling_8b",
) -> None:
    """Say what a recipe takes before it runs.  Example: clearstory plan steerling_8b --zero 3

    And what Atlas takes on a corpus of any size: clearstory plan atlas --chunks 11e9
    """
    if recipe == atlas_cli.ATLAS:
        atlas_cli.plan_atlas(
            recipe_of_atlas, settings_of or [], chunks=chunks, encoder=encoder, hardware=hardware,
            ranks=ranks, as_json=as_json,
        )  # fmt: skip
        return
    atlas_cli.require_atlas(chunks, encoder)
    from pipelines.plan import plan as count
    from pipelines.plan import zero_stage
    from pipelines.plan_tables import show

    chosen = guarded(lambda: recipes.changed(recipes.named(recipe), settings_of or []))
    counted = guarded(
        lambda: count(chosen, hardware=hardware, ranks=ranks or None, zero=zero_stage(zero))
    )
    if as_json:
        print(json.dumps({**asdict(counted), "device": counted.device.model_dump()}))
    else:
        show(counted, Console(width=None if sys.stdout.isatty() else 200))
    if not counted.fits:
        stop(
            f"{recipe} does not fit as asked. Try --zero 3, more --ranks, or a device with more "
            f"memory",
            NO,
        )


@app.command()
def fetch(recipe: RecipeArgument = "demo") -> None:
    """Fill the cache with the packages a recipe reads.  Example: clearstory fetch demo"""
    guarded(lambda: packages.fetch_all(recipes.named(recipe).packages))
    print(f"{recipe} has what it needs. Next: clearstory run {recipe}")


@app.command()
def run(
    recipe: RecipeArgument = "demo",
    runs: RunsOption = Path("runs"),
    settings_of: SetOption = None,
) -> None:
    """Run a recipe on this machine; finished stages are reused.  Example: clearstory run demo"""
    changes = settings_of or []
    chosen = guarded(lambda: recipes.changed(recipes.named(recipe), changes))
    again = ["run", recipe, *(word for change in changes for word in ("--set", change))]
    _run(chosen, _settings(chosen.name, runs, again))


@app.command()
def anneal(
    savepoint: Annotated[
        Path, typer.Argument(help="A kept one: RUNS/store/scratch/train-…/kept/step-…")
    ],
    steps: Annotated[int, typer.Option("--steps", min=1, help="Steps of the decay.")],
    recipe: Annotated[str, typer.Option("--recipe", help="Whose training it was.")] = "demo",
    runs: RunsOption = Path("runs"),
    settings_of: SetOption = None,
) -> None:
    """Let a kept savepoint decay by itself; all later stages follow.

    Savepoints are kept by a run with --set training.training.saving.keep_every=STEPS.
    Example: clearstory anneal runs/store/scratch/train-…/kept/step-000000600-… --steps 100
    """
    changes = settings_of or []
    chosen = guarded(
        lambda: recipes.annealed(recipes.changed(recipes.named(recipe), changes), savepoint, steps)
    )
    again = ["anneal", str(savepoint), "--steps", str(steps), "--recipe", recipe]
    again += [word for change in changes for word in ("--set", change)]
    _run(chosen, _settings(chosen.name, runs, again))


@app.command()
def rerun(
    run_id: Annotated[
        str, typer.Argument(help="The run to start from; the latest if omitted.")
    ] = "",
    from_: Annotated[str, typer.Option("--from", help="This stage and all after it.")] = "",
    only: Annotated[str, typer.Option("--only", help="This stage alone.")] = "",
    runs: RunsOption = Path("runs"),
) -> None:
    """Run part of an earlier run again, reuse the rest.  Example: clearstory rerun --from train"""
    guarded(lambda: _rerun(chosen_run(runs, run_id), from_, only, runs))


@app.command()
def status(
    run_id: Annotated[str, typer.Argument(help="The latest run if omitted.")] = "",
    runs: RunsOption = Path("runs"),
) -> None:
    """Show a run, task by task.  Example: clearstory status"""
    folder = guarded(lambda: chosen_run(runs, run_id))
    run_record = records.read_run(folder)
    table = Table(title=f"{run_record.run_id}: {run_record.status}, {run_record.seconds:.0f} s")
    for column in ("task", "status", "seconds", "overhead (s)", "imports (s)", "why"):
        table.add_column(
            column, justify="right" if "s)" in column or column == "seconds" else "left"
        )
    for stage in records.read_stages(folder):
        table.add_row(
            stage.task, stage.status, f"{stage.seconds:.1f}", f"{stage.overhead_seconds:.2f}",
            f"{stage.import_seconds:.1f}",
            (stage.error.strip().splitlines() or [stage.why])[-1][:100],
        )  # fmt: skip
    Console().print(table)


@app.command()
def ui(port: int = 5000, host: str = "127.0.0.1", runs: RunsOption = Path("runs")) -> None:
    """Open the MLflow UI on the runs of this folder.  Example: clearstory ui --port 5001"""
    from components import tracking
    from pipelines.ui import require_free, serve

    guarded(lambda: require_free(host, port))
    uri = os.environ.get("MLFLOW_TRACKING_URI") or tracking.default_uri(runs)
    print(f"MLflow on {uri}: http://{host}:{port} (Ctrl-C ends it)")
    raise typer.Exit(serve(uri, host, port))


def _run(recipe: Recipe, settings: Settings) -> None:
    """The whole life cycle, and the notebook on what it left."""
    guarded(lambda: require_local(recipe))
    from pipelines.lifecycle import lifecycle
    from pipelines.notebook import MEET_A_DOCUMENT, execute

    guarded(lambda: packages.fetch_all(recipe.packages))
    _finish(lifecycle(recipe), recipe, settings)
    folder = settings.run_folder
    notebook = execute(MEET_A_DOCUMENT, folder, folder / MEET_A_DOCUMENT.name)
    _print_results(folder)
    print(f"  notebook {notebook}")


def _finish(dag: "GraphComponent", recipe: Recipe, settings: Settings) -> None:
    """Run a DAG to its end, or end here with what happened and the way on."""
    from pipelines.local import RunFailedError
    from pipelines.local import run as run_locally

    logging.getLogger("mlflow").setLevel(logging.WARNING)  # it tells of every table it makes
    print(f"run {settings.run_id}: {recipe.summary}")
    try:
        record = run_locally(dag, recipe, settings)
    except KeyboardInterrupt as error:
        way_on = f"Nothing is lost, resume with: {settings.resume_command}"
        stop(f"stopped. {error}\n{way_on}", INTERRUPTED)
    except RunFailedError as error:
        log = settings.run_folder / "kfp.log"
        stop(f"{error}\nFull log: {log}\nResume with: {settings.resume_command}", error.exit_code)
    print(f"{record.run_id} finished in {record.seconds:.0f} s")


def _print_results(folder: Path) -> None:
    for stage in records.read_stages(folder):
        for manifest in stage.outputs.values():
            if manifest.contract == "Report":
                print(f"  report   {Path(manifest.location) / 'report.html'}")
    print(
        f"  record   {folder}\n  review   clearstory ui\n  again    clearstory rerun --from STAGE"
    )


def _rerun(folder: Path, from_: str, only: str, runs: Path) -> None:
    from pipelines.again import forced_from, only_stage

    if bool(from_) == bool(only):
        raise ValueError("Say either --from STAGE or --only STAGE.")
    recipe = Recipe.model_validate_json((folder / "recipe.json").read_text())
    part = ["--from", from_] if from_ else ["--only", only]
    settings = _settings(recipe.name, runs, ["rerun", folder.name, *part])
    settings = settings.model_copy(update={"origin": folder.name})
    if from_:
        _run(recipe, settings.model_copy(update={"force": forced_from(folder, from_)}))
    else:
        dag = only_stage(folder, only)
        _finish(dag, recipe, settings.model_copy(update={"force": (only,)}))
        _print_results(settings.run_folder)


def _settings(recipe: str, runs: Path, again: list[str]) -> Settings:
    from components import tracking
    from pipelines.local import new_run_id

    root = runs.resolve()
    elsewhere = [] if root == Path("runs").resolve() else ["--runs", str(runs)]
    return Settings(
        resume_command=shlex.join(["clearstory", *again, *elsewhere]),
        run_id=new_run_id(recipe), recipe=recipe, pipeline="lifecycle", runs=str(root),
        cache=str(packages.cache_folder()), commit=_commit(), experiment=_EXPERIMENT,
        tracking_uri=os.environ.get("MLFLOW_TRACKING_URI") or tracking.default_uri(root),
    )  # fmt: skip


def _commit() -> str:
    root = Path(__file__).resolve().parent
    found = subprocess.run(
        ["git", "-C", str(root), "describe", "--always", "--dirty=+dirty", "--abbrev=12"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return found.stdout.strip() or "unknown"


if __name__ == "__main__":
    app()
