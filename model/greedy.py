"""Whether greedy decoding would write a continuation (method §5, §12.2 item 14).

The AR families answer in one forward pass. In the diffusion families the answer is what generation
at temperature 0 writes; most continuations fail at its first commit, which one row can tell, so
that only the others are generated.

Shape suffixes used in this file:
    T position   A row of a forward pass   N asked token   D width   V vocabulary
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

import torch
from torch import Tensor

from model.conditional import Request, causal_states, check_lengths, finished, window
from model.language_model import LanguageModel
from model.likelihood import row_slices
from model.sampling import generate
from model.sampling_config import SamplingConfig

TIE = 1e-4
"""Probabilities nearer than this may change places between two forward passes."""


@torch.no_grad()
def are_greedy(lm: LanguageModel, requests: Sequence[Request], rows: int) -> list[bool]:
    """For each request, whether its continuation is what temperature 0 writes after its context."""
    check_lengths(lm, requests)
    found = [False] * len(requests)
    if lm.config.backbone.attention == "causal":
        for places in _grouped(requests, lambda request: len(request.ids_T), rows):
            some = [requests[at] for at in places]
            for at, state_ND in zip(places, causal_states(lm, some), strict=True):
                asked_N = requests[at].ids_T[requests[at].first :]
                found[at] = bool((_likeliest(lm, state_ND) == asked_N).all())
        return found
    block = lm.config.backbone.block
    hopeful = [False] * len(requests)
    for places in _grouped(requests, lambda request: request.first // block, rows):
        for at, passes in zip(
            places, _first_commits(lm, [requests[i] for i in places]), strict=True
        ):
            hopeful[at] = passes
    left = [at for at in range(len(requests)) if hopeful[at]]
    for places in _grouped([requests[at] for at in left], _n_asked, rows):
        _generate(lm, requests, [left[place] for place in places], found)
    return found


def _n_asked(request: Request) -> int:
    return len(request.ids_T) - request.first


def _grouped(
    requests: Sequence[Request], key: Callable[[Request], int], rows: int
) -> Iterator[list[int]]:
    """Places of requests with equal keys, at most `rows` at once."""
    ordered = sorted(range(len(requests)), key=lambda at: key(requests[at]))
    for _, group in groupby(ordered, key=lambda at: key(requests[at])):
        places = list(group)
        for start in range(0, len(places), rows):
            yield places[start : start + rows]


def _likeliest(lm: LanguageModel, state_ND: Tensor) -> Tensor:
    """The token that temperature 0 takes for each state."""
    return torch.cat([_logits(lm, state_ND[part]).argmax(-1) for part in row_slices(len(state_ND))])


def _logits(lm: LanguageModel, state_ND: Tensor) -> Tensor:
    never = torch.tensor([lm.config.bos_id, lm.config.pad_id, lm.config.mask_id])
    return lm.logits(state_ND).index_fill(-1, never, float("-inf"))


def _first_commits(lm: LanguageModel, requests: Sequence[Request]) -> list[bool]:
    """Whether the first token that greedy decoding commits can be the continuation's.

    These begin in one block. A tie is a pass: generation decides.
    """
    block = lm.config.backbone.block
    start = requests[0].first // block * block
    target_AT = torch.stack([window(lm, request, start) for request in requests])
    at_T = torch.arange(start, start + target_AT.shape[1])
    first_A1 = torch.tensor([[request.first] for request in requests])
    end_A1 = torch.tensor([[len(request.ids_T)] for request in requests])
    noisy_AT = target_AT.masked_fill(at_T >= first_A1, lm.config.mask_id)
    open_AT = (at_T >= first_A1) & (at_T < end_A1)
    known = finished(lm, requests, start)
    hidden_ATD = lm.hidden(noisy_AT, known.before(start, range(len(requests))))

    logits_NV = _logits(lm, hidden_ATD[open_AT])
    best = logits_NV.max(-1)
    certainty_AT = torch.zeros(open_AT.shape)
    certainty_AT[open_AT] = (best.values - logits_NV.logsumexp(-1)).exp()
    right_AT = torch.zeros_like(open_AT)
    right_AT[open_AT] = best.indices == target_AT[open_AT]
    nearly_A1 = certainty_AT.amax(dim=1, keepdim=True) - TIE
    passes: list[bool] = (right_AT & (certainty_AT >= nearly_A1)).any(dim=1).tolist()
    return passes


def _generate(
    lm: LanguageModel, requests: Sequence[Request], places: Sequence[int], found: list[bool]
) -> None:
    prompts = [requests[at].ids_T[: requests[at].first] for at in places]
    traces = generate(lm, prompts, SamplingConfig(n_new=_n_asked(requests[places[0]])))
    for at, trace in zip(places, traces, strict=True):
        found[at] = trace.generated == requests[at].ids_T[requests[at].first :].tolist()
