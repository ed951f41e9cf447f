"""`clearstory explain` and `clearstory steer`: why a text was written, and otherwise."""

import hashlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from components.explaining.requests import ExplainOptions, GenerateRequest
from model.sampling_config import SamplingConfig
from pipelines.earlier import RunsOption
from pipelines.exits import checked, guarded
from pipelines.explain_source import Artifacts, Named, artifacts, parent_run, settings_of
from pipelines.explain_wishes import wishes_of

if TYPE_CHECKING:  # torch and FAISS take seconds to import, and --help needs neither
    from components.explaining.opened import Opened

PromptArgument = Annotated[
    str, typer.Argument(help="Text to go on from; - reads it from the input.")
]
CheckpointOption = Annotated[
    str,
    typer.Option(
        "--checkpoint", metavar="FOLDER|RUN",
        help="A checkpoint, ours or in the released format, or a run. Default: the newest run.",
    ),
]  # fmt: skip
IndexOption = Annotated[
    Path | None, typer.Option("--index", help="Index@1. Default: the run's own.")
]
NamesOption = Annotated[
    Path | None, typer.Option("--names", help="UnknownNames@1. Default: the run's own.")
]
CalibrationOption = Annotated[
    Path | None, typer.Option("--calibration", help="Calibration@1. Default: the run's own.")
]
OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="PAGE", help="Where the HTML page is written.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="For a program to read; no page.")]
TrackOption = Annotated[
    bool, typer.Option("--track/--no-track", help="Keep the page in MLflow, with the run.")
]
NewOption = Annotated[int, typer.Option("--new", help="Most tokens to write.")]
TemperatureOption = Annotated[float, typer.Option("--temperature", help="0: the likeliest token.")]
TopOption = Annotated[float, typer.Option("--top-p", help="Share of the probability drawn from.")]
PenaltyOption = Annotated[float, typer.Option("--repetition", help="Penalty; 1 is none.")]
SeedOption = Annotated[int, typer.Option("--seed", help="Of everything drawn at random.")]
ChatOption = Annotated[
    bool, typer.Option("--chat", help="The prompt is a message; the fine-tuned network answers.")
]
IdsOption = Annotated[bool, typer.Option("--ids", help='The prompt is token ids: "3 14 15".')]
SourcesOption = Annotated[int, typer.Option("--sources", help="Training chunks for each chunk.")]
TargetsOption = Annotated[int, typer.Option("--targets", help="Tokens whose inputs are traced.")]


def explain(
    prompt: PromptArgument,
    checkpoint: CheckpointOption = "",
    index: IndexOption = None,
    names: NamesOption = None,
    calibration: CalibrationOption = None,
    out: OutOption = None,
    as_json: JsonOption = False,
    new: NewOption = 64,
    temperature: TemperatureOption = 0.0,
    top_p: TopOption = 1.0,
    repetition: PenaltyOption = 1.2,
    seed: SeedOption = 0,
    chat: ChatOption = False,
    ids: IdsOption = False,
    concepts: Annotated[int, typer.Option("--concepts", help="Listed for each chunk.")] = 8,
    sources: SourcesOption = 5,
    targets: TargetsOption = 16,
    evaluations: Annotated[
        int, typer.Option("--evaluations", help="Most passes for each target.")
    ] = 64,
    track: TrackOption = True,
    runs: RunsOption = Path("runs"),
) -> None:
    """Continue a prompt and say why.  Example: clearstory explain "The captain looked at the sea"

    Every chunk with its concepts, the tokens it hangs on, and training text like it. Exit code 2:
    what was asked for cannot be done, with the way on.
    """
    request = _request(prompt, new, temperature, top_p, repetition, seed, chat=chat, ids=ids)
    options = checked(lambda: ExplainOptions(
        top_concepts=concepts, top_sources=sources, input_targets=targets, evaluations=evaluations,
    ))  # fmt: skip
    given = guarded(
        lambda: artifacts(Named(checkpoint, index, names, calibration, runs), is_chat=chat)
    )
    from components.explaining.explanation import explain as account_for
    from components.explaining.page import explanation_page
    from pipelines import explain_tables as tables

    opened = guarded(lambda: _opened(given))
    found = guarded(lambda: account_for(opened, request, options))
    if as_json:
        print(found.model_dump_json())
    else:
        tables.explanation(found)
    _keep(
        "explained", found.model_dump_json(indent=1), lambda: explanation_page(found), given, out,
        track=track, is_quiet=as_json,
    )  # fmt: skip


def steer(
    prompt: PromptArgument,
    amplify: Annotated[
        list[str] | None, typer.Option("--amplify", metavar="CONCEPT[=STRENGTH]")
    ] = None,
    suppress: Annotated[
        list[str] | None, typer.Option("--suppress", metavar="CONCEPT[=STRENGTH]")
    ] = None,
    replace: Annotated[
        list[str] | None, typer.Option("--replace", metavar="CONCEPT=OTHER[=STRENGTH]")
    ] = None,
    checkpoint: CheckpointOption = "",
    index: IndexOption = None,
    names: NamesOption = None,
    calibration: CalibrationOption = None,
    out: OutOption = None,
    as_json: JsonOption = False,
    new: NewOption = 64,
    temperature: TemperatureOption = 0.0,
    top_p: TopOption = 1.0,
    repetition: PenaltyOption = 1.2,
    seed: SeedOption = 0,
    chat: ChatOption = False,
    ids: IdsOption = False,
    sources: SourcesOption = 3,
    targets: TargetsOption = 0,
    track: TrackOption = True,
    runs: RunsOption = Path("runs"),
) -> None:
    """Write it again with concepts changed.  Example: clearstory steer "My lord" --amplify Love=8

    A concept is a name, an id (17, unknown 17), or several joined by " + " as a group; options may
    be repeated. A strength is a shift in logits of the concept's own top token, as calibrated
    unless it is given. Shows both texts, what changed and what it cost.
    """
    wishes = checked(lambda: wishes_of(amplify or [], suppress or [], replace or []))
    request = _request(prompt, new, temperature, top_p, repetition, seed, chat=chat, ids=ids)
    options = checked(lambda: ExplainOptions(top_sources=sources, input_targets=targets))
    given = guarded(
        lambda: artifacts(Named(checkpoint, index, names, calibration, runs), is_chat=chat)
    )
    from components.explaining.steered import steer as write_twice
    from components.explaining.steered_page import steered_page
    from pipelines import explain_tables as tables

    opened = guarded(lambda: _opened(given))
    found = guarded(lambda: write_twice(opened, request, wishes, options))
    if as_json:
        print(found.model_dump_json())
    else:
        tables.steered(found)
    _keep(
        "steered", found.model_dump_json(indent=1), lambda: steered_page(found), given, out,
        track=track, is_quiet=as_json,
    )  # fmt: skip


def _request(
    prompt: str, new: int, temperature: float, top_p: float, repetition: float, seed: int, *,
    chat: bool, ids: bool,
) -> GenerateRequest:  # fmt: skip
    text = sys.stdin.read() if prompt == "-" else prompt

    def made() -> GenerateRequest:
        if new < 1 and not ids:
            raise ValueError(f"{new} new tokens are asked for; ask for at least 1: --new 64")
        sampling = SamplingConfig(
            n_new=new, temperature=temperature, top_p=top_p, repetition_penalty=repetition,
            seed=seed,
        )  # fmt: skip
        if not text.strip():
            raise ValueError("the prompt is empty; give at least one word to go on from")
        if not ids:
            return GenerateRequest(prompt=text, form="chat" if chat else "text", sampling=sampling)
        return GenerateRequest(prompt_ids=token_ids(text), sampling=sampling)

    return checked(made)


def token_ids(text: str) -> tuple[int, ...]:
    """The numbers of a prompt that is given as token ids."""
    wrong = [word for word in text.split() if not (word.isascii() and word.isdigit())]
    if wrong:
        raise ValueError(f"{wrong[0]!r} is no token id; give numbers, or leave out --ids")
    return tuple(map(int, text.split()))


def _opened(given: Artifacts) -> "Opened":
    from components.explaining.opened import open_checkpoint

    return open_checkpoint(
        given.checkpoint, index=given.index, names=given.names, calibration=given.calibration
    )


def _keep(
    kind: str, document: str, page: Callable[[], str], given: Artifacts, out: Path | None, *,
    track: bool, is_quiet: bool,
) -> None:  # fmt: skip
    """Write the page, and log page and document with the run. `is_quiet`: stdout is a program's."""
    name = f"{kind}-{hashlib.sha256(document.encode()).hexdigest()[:10]}"
    told = sys.stderr if is_quiet else sys.stdout
    if out is not None or not is_quiet:
        where = out if out is not None else _beside(given, f"{name}.html")
        guarded(lambda: _write(where, page()))
        print(f"\npage     {where}", file=told)
    if not track:
        return
    run = given.run
    if run is None:
        print("tracking nothing: the checkpoint is of no run here", file=told)
    elif not parent_run(run):
        print(f"tracking nothing: the run {run.name} is not in MLflow", file=told)
    else:
        guarded(lambda: _log(run, {f"{name}.html": page(), f"{name}.json": document}))
        print(f"tracking explanations/{name} of {run.name}", file=told)


def _beside(given: Artifacts, name: str) -> Path:
    folder = Path("explanations") if given.run is None else given.run / "explanations"
    return folder / name


def _write(path: Path, page: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page)
    except OSError as error:
        raise ValueError(
            f"the page cannot be written to {path} ({error.strerror}); name another file with --out"
        ) from error


def _log(run: Path, files: Mapping[str, str]) -> None:
    from components.tracking import attach

    attach(settings_of(run), parent_run(run), "explanations", files)
