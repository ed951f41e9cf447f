"""`clearstory plan atlas` and `clearstory distil`: Atlas on a corpus that is large."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pipelines import recipes
from pipelines.earlier import RunsOption, chosen_run
from pipelines.exits import BAD_INPUT, guarded, stop

ATLAS = "atlas"
ChunksOption = Annotated[
    float, typer.Option("--chunks", help="plan atlas: chunks of the corpus, e.g. 11e9.")
]
EncoderOption = Annotated[
    str, typer.Option("--encoder", help="plan atlas: another encoder than the recipe's.")
]
RecipeOption = Annotated[
    str, typer.Option("--recipe", help="plan atlas: whose tagging, library and hardware.")
]


def require_atlas(chunks: float, encoder: str) -> None:
    """End the command where options of `plan atlas` are given for a recipe."""
    if chunks or encoder:
        stop(
            "--chunks and --encoder belong to Atlas. Try: clearstory plan atlas --chunks 11e9",
            BAD_INPUT,
        )


def plan_atlas(
    recipe: str, settings_of: list[str], *, chunks: float, encoder: str, hardware: str, ranks: int,
    as_json: bool,
) -> None:  # fmt: skip
    """Print what Atlas takes."""
    from pipelines.plan_atlas import plan
    from pipelines.plan_atlas_tables import show

    chosen = guarded(lambda: recipes.changed(recipes.named(recipe), settings_of))
    counted = guarded(
        lambda: plan(chosen, n_chunks=chunks, hardware=hardware, encoder_name=encoder, ranks=ranks)
    )
    if as_json:
        print(json.dumps(asdict(counted)))
    else:
        show(counted, Console(width=None if sys.stdout.isatty() else 200))


def distil(
    out: Annotated[Path, typer.Option("--out", help="Folder of the encoder.")],
    run_id: Annotated[
        str, typer.Argument(help="Whose chunks and vectors; the latest run if omitted.")
    ] = "",
    runs: RunsOption = Path("runs"),
) -> None:
    """Learn a fast encoder from the vectors of a run.  Example: clearstory distil --out fast"""
    from components import contracts, records
    from components.atlas.distilling import DistilConfig
    from components.atlas.distilling import distil as learn
    from components.run_folder import RunFolder

    folder = guarded(lambda: chosen_run(runs, run_id))
    run, recipe = RunFolder(folder), records.read_run(folder).recipe
    documents, chunks, vectors = (
        run.artifact(contract)
        for contract in (contracts.DOCUMENTS, contracts.CHUNKS, contracts.VECTORS)
    )
    made = guarded(lambda: learn(documents, chunks, vectors, out.resolve(), DistilConfig()))
    facts = contracts.json_file(out, "encoder.json")
    print(
        f"{made.name}: learned from {facts['n_chunks']} vectors of {facts['teacher']}; cosine "
        f"{facts['cosine_held_out']} on {facts['n_held_out']} held-out chunks"
    )
    sets = (f"--set {stage}.encoder={made.name}" for stage in ("embedding", "tagging", "library"))
    print(f"  use it   clearstory run {recipe} {' '.join(sets)}")
