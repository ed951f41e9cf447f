"""Continue texts, many at a time: requests of the same settings share their batches (paper §5)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from components.explaining.opened import Opened
from components.explaining.schema import GeneratedToken, GenerateRequest, Generation
from model import chat
from model.sampling import generate as sample
from model.sampling_config import SamplingConfig
from model.steering import Steering
from model.trace import Trace

Heard = Callable[[int, str], bool]
"""Takes the number of a request and its text so far, whenever a block of it is finished; answers
whether it is still wanted. A text that is not ends there."""


class AbandonedError(RuntimeError):
    """Whoever asked does not wait for the answer any more."""


def deaf(request: int, text: str) -> bool:
    """Nobody listens, and everything is wanted."""
    return True


def wanted(heard: Heard, text: str) -> None:
    """Raise AbandonedError unless the only request is still wanted."""
    if not heard(0, text):
        raise AbandonedError(f"nobody waits for the text {text[:40]!r} any more")


@dataclass(frozen=True)
class Written:
    """A generation with the trace that explanations start from."""

    generation: Generation
    trace: Trace


def generate(
    opened: Opened, requests: Sequence[GenerateRequest], heard: Heard = deaf
) -> list[Generation]:
    """Continue each prompt, in the order of the requests. Each text is what it would be alone.

    Raises ValueError for the first request that cannot be answered.
    """
    return [written.generation for written in write(opened, requests, heard)]


def write(
    opened: Opened, requests: Sequence[GenerateRequest], heard: Heard = deaf,
    steering: Steering | None = None,
) -> list[Written]:  # fmt: skip
    """The same with traces. `steering` is of a single request."""
    prompts = [prompt_ids(opened, request) for request in requests]
    found: dict[int, Written] = {}
    for numbers in _alike(requests):
        first = requests[numbers[0]]

        def told(row: int, ids: list[int], numbers: list[int] = numbers) -> bool:
            return heard(numbers[row], text_of(opened, ids))

        traces = sample(
            opened.lm, [prompts[number] for number in numbers], first.sampling,
            stop_ids=_stop_ids(opened), sample_ids=[0] * len(numbers),
            seeds=[requests[number].sampling.seed for number in numbers], steering=steering,
            heard=told,
        )  # fmt: skip
        for number, trace in zip(numbers, traces, strict=True):
            generation = _generation(
                opened, requests[number], trace, is_steered=steering is not None
            )
            found[number] = Written(generation, trace)
    return [found[number] for number in range(len(requests))]


def prompt_ids(opened: Opened, request: GenerateRequest) -> Tensor:
    """What the network is given (P). Raises ValueError for a prompt that is empty or too long."""
    ids = list(request.prompt_ids) or _encoded(opened, request)
    vocabulary, longest = opened.lm.config.backbone.vocab_size, opened.max_length
    outside = [token_id for token_id in ids if token_id >= vocabulary]
    if outside:
        raise ValueError(
            f"the prompt holds token id {outside[0]}, but ids are 0 … {vocabulary - 1}; give ids "
            f"of this checkpoint's vocabulary"
        )
    if opened.lm.config.mask_id in ids:
        raise ValueError(
            f"the prompt holds token id {opened.lm.config.mask_id}, <|mask|>, which only "
            f"generation may place; leave it out"
        )
    room = longest - request.sampling.n_new
    if len(ids) > room:
        way = f"shorten the prompt to {room} tokens, or ask for fewer new ones"
        raise ValueError(
            f"the prompt has {len(ids)} tokens and {request.sampling.n_new} are to be generated, "
            f"but the network reads {longest} at most; "
            + (way if room > 0 else f"ask for fewer than {longest} new ones")
        )
    return torch.tensor(ids)


def _encoded(opened: Opened, request: GenerateRequest) -> list[int]:
    if not request.prompt.strip():
        raise ValueError("the prompt is empty; give at least one word to go on from")
    if opened.tokenizer is None:
        raise ValueError(
            "this checkpoint has no tokenizer.json, so it reads token ids alone; give the prompt "
            "as ids, or put the tokenizer's file into its folder"
        )
    if request.form == "chat":
        return chat.prompt(opened.tokenizer, [chat.Message("user", request.prompt)])
    return [opened.lm.config.bos_id, *opened.tokenizer.encode(request.prompt)]


def _stop_ids(opened: Opened) -> list[int]:
    return [] if opened.tokenizer is None else [opened.tokenizer.specials.end_of_turn_id]


def _alike(requests: Sequence[GenerateRequest]) -> list[list[int]]:
    """Numbers of the requests that can share a batch: those of one config but for the seed."""
    groups: dict[SamplingConfig, list[int]] = {}
    for number, request in enumerate(requests):
        groups.setdefault(unseeded(request.sampling), []).append(number)
    return list(groups.values())


def unseeded(config: SamplingConfig) -> SamplingConfig:
    """What requests must agree on to share a batch: each row has its own seed."""
    return config.model_copy(update={"seed": 0})


def pieces(opened: Opened, ids: Sequence[int]) -> list[str]:
    """Tokens as a person reads them; their ids where there is no tokenizer."""
    if opened.tokenizer is None:
        return [f" {token_id}" for token_id in ids]
    return opened.tokenizer.pieces(ids)


def text_of(opened: Opened, ids: Sequence[int]) -> str:
    """The text of some tokens, without special ones."""
    if opened.tokenizer is None:
        return "".join(pieces(opened, ids)).strip()
    return opened.tokenizer.decode(ids)


def _generation(
    opened: Opened, request: GenerateRequest, trace: Trace, *, is_steered: bool
) -> Generation:
    commits = reading_order(trace).tolist()
    ids = trace.token_N[commits].tolist()
    tokens = tuple(
        GeneratedToken(
            position=int(trace.position_N[commit]), token_id=token_id, text=piece,
            probability=float(trace.confidence_N[commit]), commit_order=commit,
        )
        for commit, token_id, piece in zip(commits, ids, pieces(opened, ids), strict=True)
    )  # fmt: skip
    return Generation(
        request=request,
        prompt_tokens=tuple(pieces(opened, trace.ids_T[: trace.n_prompt].tolist())),
        text=text_of(opened, ids),
        tokens=tokens,
        stopped=trace.stopped,
        steered=is_steered,
        notes=opened.notes,
    )


def reading_order(trace: Trace) -> Tensor:
    """Commits (N) of the trace that are its text, as they are read."""
    inside_N = (trace.position_N < trace.end).nonzero().squeeze(-1)
    return inside_N[trace.position_N[inside_N].argsort()]
