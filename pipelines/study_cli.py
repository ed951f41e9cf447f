"""`clearstory study`: draw, collect, pair, analyse."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from components import contracts
from components.contracts import Contract
from components.run_folder import RunFolder
from components.study.config import AnalyseConfig, CollectConfig, DrawConfig, PairConfig
from components.study.figures import Analysis
from pipelines.earlier import RunsOption, chosen_run
from pipelines.exits import guarded

app = typer.Typer(
    help="Ask people whether they recognise concepts, and which name fits.", no_args_is_help=True
)
OutOption = Annotated[Path, typer.Option("--out", help="A folder that is not there yet.")]
RunOption = Annotated[str, typer.Option("--run", help="The run; the newest if omitted.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Of everything drawn at random.")]
RatersOption = Annotated[int, typer.Option("--raters", min=1, help="People who answer.")]
JsonOption = Annotated[bool, typer.Option("--json", help="For a program to read.")]


@app.command()
def draw(
    out: OutOption,
    run: RunOption = "",
    concepts: Annotated[int, typer.Option("--concepts", min=1, help="Concepts drawn.")] = 100,
    words: Annotated[int, typer.Option("--words", min=1, help="Words shown of each.")] = 15,
    raters: RatersOption = 9,
    ratings: Annotated[int, typer.Option("--ratings", min=1, help="Raters of a concept.")] = 3,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
    runs: RunsOption = Path("runs"),
) -> None:
    """Write the questionnaires of phase 1.  Example: clearstory study draw --out study1"""
    config = guarded(
        lambda: DrawConfig(
            n_concepts=concepts, n_words=words, n_raters=raters, ratings_per_concept=ratings,
            seed=seed,
        )
    )  # fmt: skip

    def make(folder: Path) -> None:
        from components.study.drawing import draw as draw_study

        given = RunFolder(chosen_run(runs, run))
        wanted = (contracts.CONCEPTS, contracts.LIFTED_WORDS, contracts.TOKENS)
        library, lifted, tokens = (_of_run(given, contract) for contract in wanted)
        draw_study(library, lifted, tokens, folder, config)

    _made(out, make)
    said = contracts.json_file(out, "study.json")
    text = (
        f"study {said['study_id']}: {said['n_concepts']} concepts, {raters} questionnaires in "
        f"{out / 'questionnaires'}\n{said['n_passed_over']} of {said['n_known_concepts']} concepts "
        f"were passed over: fewer than {words} words that a person can read\nNext: give each rater "
        f"a page, put what they save into one folder, then: clearstory study collect {out} FOLDER "
        f"--out answers1"
    )
    _tell(said, text, as_json=as_json)


@app.command()
def collect(
    study: Annotated[Path, typer.Argument(help="What `draw` or `pair` wrote.")],
    returned: Annotated[Path, typer.Argument(help="Folder of the files that raters saved.")],
    out: OutOption,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Count what is missing, do not refuse it.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Read answers back.  Example: clearstory study collect study1 returned1 --out answers1"""

    def make(folder: Path) -> None:
        from components.study.collecting import collect as read_back

        contracts.verify(study, contracts.STUDY)
        read_back(study, folder, CollectConfig.of(returned, allow_missing=allow_missing))

    _made(out, make)
    said = contracts.json_file(out, "collected.json")
    first = f"clearstory study pair {study} {out} --out study2"
    second = f"clearstory study analyse PHASE1_ANSWERS {out} --out analysis"
    text = (
        f"study {said['study_id']}, phase {said['phase']}: {said['n_items_answered']} of "
        f"{said['n_items_asked']} items answered by {said['n_raters']} of {said['n_raters_asked']} "
        f"raters\nNext: {first if said['phase'] == 1 else second}"
    )
    _tell(said, text, as_json=as_json)


@app.command()
def pair(
    study: Annotated[Path, typer.Argument(help="What `draw` wrote.")],
    answers: Annotated[Path, typer.Argument(help="What `collect` wrote of it.")],
    out: OutOption,
    run: RunOption = "",
    raters: RatersOption = 9,
    ratings: Annotated[int, typer.Option("--ratings", min=1, help="Raters of a concept.")] = 4,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
    runs: RunsOption = Path("runs"),
) -> None:
    """Write those of phase 2.  Example: clearstory study pair study1 answers1 --out study2"""
    config = guarded(lambda: PairConfig(n_raters=raters, ratings_per_concept=ratings, seed=seed))

    def make(folder: Path) -> None:
        from components.study.pairing import pair as pair_names

        contracts.verify(study, contracts.STUDY)
        library = _of_run(RunFolder(chosen_run(runs, run)), contracts.CONCEPTS)
        pair_names(study, answers, library, folder, config)

    _made(out, make)
    said = contracts.json_file(out, "study.json")
    text = (
        f"study {said['study_id']}: three names for each of {said['n_concepts']} concepts, "
        f"{raters} questionnaires in {out / 'questionnaires'}\nconcepts that nobody named, passed "
        f"over: {said['n_passed_over']}\nNext: clearstory study collect {out} FOLDER --out "
        f"answers2"
    )
    _tell(said, text, as_json=as_json)


@app.command()
def analyse(
    named: Annotated[Path, typer.Argument(help="Collected answers of phase 1.")],
    out: OutOption,
    rated: Annotated[
        Path | None, typer.Argument(help="Collected answers of phase 2, once there are some.")
    ] = None,
    ordinal: Annotated[
        bool, typer.Option("--ordinal", help="The cumulative-link model too (needs PyMC).")
    ] = False,
    draws: Annotated[
        int, typer.Option("--draws", min=10_000, help="Of the bootstrap over concepts.")
    ] = 10_000,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Say what raters said.  Example: clearstory study analyse answers1 answers2 --out analysis"""
    config = AnalyseConfig(bootstrap_draws=draws, ordinal=ordinal, seed=seed)

    def make(folder: Path) -> None:
        from components.study.analysis import analyse as analyse_answers

        analyse_answers(named, [] if rated is None else [rated], folder, config)

    _made(out, make)
    found = Analysis.model_validate_json((out / "analysis.json").read_bytes())
    _tell(found.model_dump(mode="json"), _summary(found, out), as_json=as_json)


def _summary(found: Analysis, out: Path) -> str:
    from components.numerals import interval, number
    from components.study.page import NAMES

    lines = [
        f"{NAMES.get(name, name.replace('_', ' ')):<46} {number(figure.value):>8}  "
        f"{interval(figure.low, figure.high):<20} n = {figure.n} {figure.n_of}"
        for part in (found.coherence, found.fit, found.models, found.by_coherence, found.power)
        for name, figure in part.items()
    ]
    lines += [f"left out: {reason}" for reason in found.left_out]
    return "\n".join([*lines, f"The page: {out / 'analysis.html'}"])


def _of_run(run: RunFolder, contract: Contract) -> Path:
    """An artifact of a run; a run without it is a person's mistake, told as one."""
    try:
        return run.artifact(contract)
    except FileNotFoundError as error:
        raise ValueError(str(error)) from None


def _made(out: Path, make: Callable[[Path], None]) -> None:
    """Make a folder whole or not at all: what fails halfway leaves nothing behind."""
    guarded(lambda: _refuse_existing(out))
    partial = out.with_name(f"{out.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        guarded(lambda: make(partial))
        partial.rename(out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _refuse_existing(out: Path) -> None:
    if out.exists():
        raise ValueError(f"{out} is there already; name another folder with --out, or remove it")


def _tell(said: dict[str, object], text: str, *, as_json: bool) -> None:
    print(json.dumps(said) if as_json else text)
