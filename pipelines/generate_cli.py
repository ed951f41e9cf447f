"""`clearstory generate`: texts of a checkpoint, many at once, and blanks in texts."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from components.explaining.requests import GenerateRequest
from model.sampling_config import EntropyConfig, SamplingConfig
from pipelines import explain_cli as options
from pipelines.earlier import RunsOption
from pipelines.exits import checked, guarded
from pipelines.explain_source import Named, artifacts

if TYPE_CHECKING:  # torch takes seconds to import, and --help needs none
    from components.explaining.opened import Opened

PromptsArgument = Annotated[
    list[str], typer.Argument(help="Texts to go on from; - reads one from the input.")
]
AdaptiveOption = Annotated[
    bool, typer.Option("--adaptive", help="Scale the temperature: cold where the network is sure.")
]
ThresholdOption = Annotated[
    float | None,
    typer.Option("--threshold", help="Write every token of the block at once that is as probable."),
]
GuidanceOption = Annotated[
    float, typer.Option("--guidance", help="How much more the prompt counts; 0 is none.")
]
BlankOption = Annotated[
    str, typer.Option("--blank", metavar="MARKER", help="Stands in the prompt for what to fill in.")
]
BlankTokensOption = Annotated[int, typer.Option("--blank-tokens", help="Tokens for each blank.")]


@dataclass(frozen=True)
class _Text:
    """One text, and what it took."""

    text: str
    n_tokens: int
    n_passes: int
    stopped: bool
    blanks: tuple[str, ...]


def generate(
    prompts: PromptsArgument,
    checkpoint: options.CheckpointOption = "",
    new: options.NewOption = 64,
    temperature: options.TemperatureOption = 0.0,
    top_p: options.TopOption = 1.0,
    adaptive: AdaptiveOption = False,
    threshold: ThresholdOption = None,
    repetition: options.PenaltyOption = 1.2,
    guidance: GuidanceOption = 0.0,
    seed: options.SeedOption = 0,
    blank: BlankOption = "",
    blank_tokens: BlankTokensOption = 1,
    chat: options.ChatOption = False,
    ids: options.IdsOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="For a program to read.")] = False,
    runs: RunsOption = Path("runs"),
) -> None:
    """Continue prompts, or fill blanks.  Example: clearstory generate "The captain" --new 48

    clearstory generate "The captain ___ the sea" --blank ___ --blank-tokens 2 --new 0

    Prompts share a batch, and each text is what it would be alone. Special tokens that are spelled
    out in a prompt stay text. A pass writes one token of a text, or several with --threshold. Exit
    code 2: what was asked for cannot be done, with the way on.
    """
    how = checked(
        lambda: _sampling(
            SamplingConfig(
                n_new=new, temperature=temperature, top_p=top_p,
                entropy=EntropyConfig() if adaptive else None, threshold=threshold,
                repetition_penalty=repetition, guidance=guidance, seed=seed,
            ),
            has_blanks=bool(blank),
        )
    )  # fmt: skip
    texts = [sys.stdin.read() if prompt == "-" else prompt for prompt in prompts]
    guarded(lambda: _check(texts, is_plain=not (chat or ids), has_blanks=bool(blank)))
    requests = checked(lambda: [_request(text, how, is_chat=chat, is_ids=ids) for text in texts])
    given = guarded(lambda: artifacts(Named(checkpoint, None, None, None, runs), is_chat=chat))
    from components.explaining.opened import open_checkpoint

    opened = guarded(
        lambda: open_checkpoint(given.checkpoint, index=None, names=None, calibration=None)
    )
    began = perf_counter()
    if blank:
        found = guarded(lambda: _filled(opened, texts, blank, blank_tokens, how))
    else:
        found = guarded(lambda: _continued(opened, requests))
    (_print_json if as_json else _print)(found, perf_counter() - began, opened.notes)


def _sampling(config: SamplingConfig, *, has_blanks: bool) -> SamplingConfig:
    if config.n_new < 1 and not has_blanks:
        raise ValueError(f"{config.n_new} new tokens are asked for; ask for at least 1: --new 64")
    if config.entropy is not None and config.temperature == 0.0:
        raise ValueError(
            "--adaptive scales the temperature, and temperature 0 takes the likeliest token "
            "however it is scaled; give --temperature 1 too"
        )
    return config


def _check(texts: list[str], *, is_plain: bool, has_blanks: bool) -> None:
    if not all(text.strip() for text in texts):
        raise ValueError("the prompt is empty; give at least one word to go on from")
    if has_blanks and not is_plain:
        raise ValueError("blanks are filled in plain text; leave out --chat and --ids, or --blank")


def _request(text: str, how: SamplingConfig, *, is_chat: bool, is_ids: bool) -> GenerateRequest:
    if is_ids:
        return GenerateRequest(prompt_ids=options.token_ids(text), sampling=how)
    return GenerateRequest(prompt=text, form="chat" if is_chat else "text", sampling=how)


def _continued(opened: "Opened", requests: list[GenerateRequest]) -> list[_Text]:
    from components.explaining.writing import write

    return [
        _Text(one.generation.text, len(one.generation.tokens), one.trace.n_groups,
              one.generation.stopped, ())
        for one in write(opened, requests)
    ]  # fmt: skip


def _filled(
    opened: "Opened", texts: list[str], blank: str, n_tokens: int, how: SamplingConfig
) -> list[_Text]:
    from components.explaining.blanks import fill

    filled = [fill(opened, text, blank, n_tokens, how) for text in texts]
    return [
        _Text(one.text, int((one.trace.position_N < one.trace.end).sum()), one.trace.n_groups,
              one.trace.stopped, one.blanks)
        for one in filled
    ]  # fmt: skip


def _per_pass(found: list[_Text]) -> float:
    """Tokens of a text for each pass through its open block."""
    return sum(one.n_tokens for one in found) / sum(one.n_passes for one in found)


def _print(found: list[_Text], seconds: float, notes: tuple[str, ...]) -> None:
    from pipelines.concepts_tables import plain

    for one in found:
        for line in one.text.splitlines():
            print(plain(line))
        print()
    n_tokens = sum(one.n_tokens for one in found)
    print(f"{n_tokens} tokens in {seconds:.2f} s, {n_tokens / seconds:.0f} tokens/s, "
          f"{_per_pass(found):.2f} tokens a pass")  # fmt: skip
    for said in notes:
        print(f"note: {plain(said)}")


def _print_json(found: list[_Text], seconds: float, notes: tuple[str, ...]) -> None:
    told = {
        "document": "clearstory.generated/1", "n_texts": len(found), "seconds": seconds,
        "tokens_per_pass": _per_pass(found), "generations": [vars(one) for one in found],
        "notes": notes,
    }  # fmt: skip
    print(json.dumps(told))
