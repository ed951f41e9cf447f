"""`clearstory concepts`: search, show, diff, export."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from components.catalogue import export as files
from components.catalogue.examples import NEEDED, Example, examples
from components.catalogue.history import origin
from components.catalogue.limits import Limits
from components.library import Concept
from pipelines.concepts_source import Source, source
from pipelines.earlier import RunsOption
from pipelines.exits import NO, guarded, stop

app = typer.Typer(
    help="Look into a library of concepts, compare two, or take one elsewhere.",
    no_args_is_help=True,
)  # fmt: skip

InOption = Annotated[
    str,
    typer.Option(
        "--in", metavar="SOURCE",
        help="A run, a folder of Concepts@1 or its rows.parquet. Default: the newest run.",
    ),
]  # fmt: skip
JsonOption = Annotated[bool, typer.Option("--json", help="For a program to read.")]


@app.command()
def search(
    text: Annotated[str, typer.Argument(help="A word or a phrase.")],
    in_: InOption = "",
    n: Annotated[int, typer.Option("--n", min=1, help="Concepts shown at most.")] = 10,
    words: Annotated[
        bool, typer.Option("--words", help="By the words alone, without the encoder.")
    ] = False,
    as_json: JsonOption = False,
    runs: RunsOption = Path("runs"),
) -> None:
    """Find concepts by words and by meaning.  Example: clearstory concepts search "sea voyage"

    A score is the cosine of the text and the concept's tags, plus 0.5 if the words stand in its
    name, or 0.25 if in a tag or in the description. Exit code 1 says that nothing was found, which
    happens with --words alone.
    """
    from components.catalogue.search import encoder_of
    from components.catalogue.search import search as find
    from pipelines import concepts_tables as tables

    given = guarded(lambda: source(in_, runs))
    hits = guarded(
        lambda: find(given.library, text, n, None if words else encoder_of(given.library))
    )
    if as_json:
        _tell([
            {**files.row_of(hit.concept), "score": hit.score, "cosine": hit.cosine,
             "found_in": hit.place}
            for hit in hits
        ])  # fmt: skip
    else:
        tables.hits(hits, given.name)
    if not hits:
        stop(f"no concept of {given.name} has {text!r} in its name, tags or description", NO)


@app.command()
def show(
    concept: Annotated[str, typer.Argument(metavar="ID|NAME", help="Whatever its case.")],
    in_: InOption = "",
    n_examples: Annotated[int, typer.Option("--examples", min=0, help="Chunks shown.")] = 3,
    n_nearest: Annotated[int, typer.Option("--nearest", min=0, help="Concepts like it.")] = 5,
    as_json: JsonOption = False,
    runs: RunsOption = Path("runs"),
) -> None:
    """All there is to know of a concept.  Example: clearstory concepts show 12"""
    from components.catalogue.search import by_id_or_name, nearest_to
    from pipelines import concepts_tables as tables

    given = guarded(lambda: source(in_, runs))
    found = guarded(lambda: by_id_or_name(given.library, concept))
    near = nearest_to(given.library, found, n_nearest) if n_nearest else []
    mine = frozenset(name.casefold() for name in (found.name, *found.members))
    steps = [step for step in guarded(lambda: origin(given.library)).history if step.touches(mine)]
    shown = guarded(lambda: _examples(given, found, n_examples))
    if as_json:
        _tell({
            **files.row_of(found),
            "nearest": [{"concept_id": other.concept_id, "name": other.name, "cosine": cosine}
                        for other, cosine in near],
            "history": [step.model_dump() for step in steps],
            "examples": [asdict(example) for example in shown],
        })  # fmt: skip
    else:
        tables.card(found, near, steps, shown)


@app.command()
def diff(
    before: Annotated[str, typer.Argument(metavar="A", help="As for --in elsewhere.")],
    after: Annotated[str, typer.Argument(metavar="B", help="As for --in elsewhere.")],
    cosine: Annotated[
        float, typer.Option("--cosine", min=0.0, max=1.0, help="Of centroids that are one concept.")
    ] = Limits().cosine,
    overlap: Annotated[
        float, typer.Option("--overlap", min=0.0, max=1.0, help="Of tags, or that share of them.")
    ] = Limits().overlap,
    n: Annotated[int, typer.Option("--n", min=0, help="Concepts listed of each sort.")] = 10,
    as_json: JsonOption = False,
    runs: RunsOption = Path("runs"),
) -> None:
    """What became of A's concepts in B.  Example: clearstory concepts diff demo-…-ab12 demo-…-cd34

    Exit code 0: the same concepts with the same names and tags. 1: there are differences.
    """
    from components.catalogue.difference import compare
    from pipelines import concepts_tables as tables

    first, second = guarded(lambda: source(before, runs)), guarded(lambda: source(after, runs))
    limits = Limits(cosine=cosine, overlap=overlap)
    found = guarded(lambda: compare(first.library, second.library, limits))
    if as_json:
        _tell(tables.as_data(found))
    else:
        tables.differences(found, first.name, second.name, n)
    if not found.is_none:
        raise typer.Exit(NO)


@app.command()
def export(
    out: Annotated[Path, typer.Argument(help="A file that ends in .parquet, .csv or .json.")],
    in_: InOption = "",
    layout: Annotated[
        files.Layout,
        typer.Option("--layout", help="`released`: the columns of concept_labels.parquet."),
    ] = "clearstory",
    force: Annotated[bool, typer.Option("--force", help="Write over a file there is.")] = False,
    as_json: JsonOption = False,
    runs: RunsOption = Path("runs"),
) -> None:
    """Write a library as one file.  Example: clearstory concepts export concepts.csv"""
    given = guarded(lambda: source(in_, runs))
    n = guarded(lambda: _exported(given, out, layout, force=force))
    if as_json:
        _tell({"file": str(out), "n_concepts": n, "library_digest": given.library.digest})
    else:
        print(f"{n} concepts of {given.name} in {out}")


def _exported(given: Source, out: Path, layout: files.Layout, *, force: bool) -> int:
    if out.exists() and not force:
        raise ValueError(f"{out} exists; give another name, or --force to write over it")
    return files.export(given.library, out, layout)


def _examples(given: Source, concept: Concept, n: int) -> list[Example]:
    run = given.run
    if run is None or n == 0 or not all(run.has(contract) for contract in NEEDED):
        return []
    return examples(run, given.library, concept, n)


def _tell(value: object) -> None:
    print(json.dumps(value, ensure_ascii=False))
