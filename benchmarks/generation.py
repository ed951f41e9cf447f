"""Exact cached generation against the released design, which keeps nothing between steps.

reference  the prompt and all new masks through every layer, the whole head and both concept heads
           at every position, for every token; concepts by the released package's running merge,
           their rows gathered; with attribution, the committed token's parts too
ours       the open block over a cache, the head at its masked positions, no concept head; with
           attribution, one call for the committed states

Both commit the most certain masked position of the open block, one a step, greedily. A reference
that would take minutes is timed at some steps, evenly spread, in the texts that ours went through;
its seconds are those of a step times the steps, and tokens are compared at those steps.

python -m benchmarks.generation     all cases; a few minutes
"""

from dataclasses import dataclass
from time import process_time

import torch
from torch import Tensor

from benchmarks.measure import Contest
from benchmarks.straightforward import gathered_sum, merged_top
from model.attribution import ConceptAttribution, concept_attribution
from model.config import BackboneConfig, BottleneckConfig, LanguageModelConfig
from model.language_model import LanguageModel
from model.sampling import generate
from model.sampling_config import SamplingConfig
from model.trace import Trace

_NEVER = (0, 2, 3)
"""BOS, padding and the mask are never written."""

MASK = 3

Parts = list[tuple[Tensor, Tensor]]
"""Ids and contributions of the known concepts of one token, then of the unknown ones."""


@dataclass(frozen=True)
class Case:
    """How much is written, by what network, and how many of the reference's steps are timed."""

    n_prompt: int
    n_new: int
    target: float
    n_timed: int
    library: str = "small"
    attributed: bool = False

    @property
    def name(self) -> str:
        what = ", all concepts" if self.library == "full" else ""
        explained = ", attributed" if self.attributed else ""
        return f"generate {self.n_new} after {self.n_prompt}{what}{explained}"


EVERYDAY = Case(64, 128, target=3.0, n_timed=128)
CASES = (
    EVERYDAY,
    Case(64, 512, target=8.0, n_timed=32),
    Case(512, 1_024, target=20.0, n_timed=16),
    Case(64, 64, target=15.0, n_timed=16, library="full"),
    Case(64, 128, target=3.0, n_timed=64, attributed=True),
    Case(64, 64, target=10.0, n_timed=16, library="full", attributed=True),
)
_LIBRARIES = {
    "small": BottleneckConfig(n_known=1_000, n_unknown=3_000, rank=64, known_bias=False),
    "full": BottleneckConfig(n_known=33_732, n_unknown=101_196, rank=256, known_bias=False),
}


def contest() -> Contest:
    """64 + 128 tokens, greedy, one a step; width 256, vocabulary 8,192, 1,000 concepts."""
    return raced(EVERYDAY, repeats=2)


def raced(case: Case, repeats: int) -> Contest:
    """Turn by turn; the least processor seconds of each."""
    lm = _network(case)
    draw = torch.Generator().manual_seed(0)
    prompt_P = torch.randint(8, 8_192, (case.n_prompt,), generator=draw)
    mine, theirs = [], []
    for _ in range(repeats):
        began = process_time()
        (trace,) = generate(lm, [prompt_P], SamplingConfig(n_new=case.n_new))
        found = None if not case.attributed else _attributed(lm, trace)
        mine.append(process_time() - began)
        n_same, error, seconds = _reference(lm, trace, found, case)
        theirs.append(seconds * trace.n_groups)
    n_timed = min(case.n_timed, trace.n_groups)
    agreement = f"{n_same} of {n_timed} tokens equal"
    if n_timed < trace.n_groups:
        agreement += f", {n_timed} of {trace.n_groups} reference steps timed"
    if case.attributed:
        agreement += f", contributions within {error:.0e}"
    return Contest(case.name, min(theirs), min(mine), agreement, repeats, case.target)


def _attributed(lm: LanguageModel, trace: Trace) -> ConceptAttribution:
    return concept_attribution(lm, trace.state_ND, trace.token_N, trace.logit_N)


def _network(case: Case) -> LanguageModel:
    backbone = BackboneConfig(
        vocab_size=8_192, width=256, n_layers=4, n_heads=8, n_kv_heads=4, mlp_width=1_024,
        max_length=2_048, block=64,
    )  # fmt: skip
    config = LanguageModelConfig(
        backbone=backbone, bottleneck=_LIBRARIES[case.library], bos_id=0, eos_id=1, pad_id=2,
        mask_id=MASK, end_of_chunk_id=4,
    )  # fmt: skip
    lm = LanguageModel(config, seed=0).eval()
    lm.embedding.weight.data[1] *= 0  # no text ends before its time
    return lm


@torch.no_grad()
def _reference(
    lm: LanguageModel, trace: Trace, found: ConceptAttribution | None, case: Case
) -> tuple[int, float, float]:
    """Equal tokens, the largest difference of contributions, and seconds of a step."""
    places = torch.linspace(0, trace.n_groups - 1, min(case.n_timed, trace.n_groups)).round()
    n_same, error, seconds = 0, 0.0, 0.0
    for group in places.long().tolist():
        ids_T = _as_it_was(trace, group, case)
        began = process_time()
        position, token, parts = _step(lm, ids_T, attributed=found is not None)
        seconds += process_time() - began
        n_same += (position, token) == (int(trace.position_N[group]), int(trace.token_N[group]))
        if found is not None and parts is not None:
            error = max(error, _distance(parts, found, group))
    return n_same, error, seconds / len(places)


def _as_it_was(trace: Trace, group: int, case: Case) -> Tensor:
    """The prompt, what was committed before, and masks up to the end of what is asked for."""
    ids_T = torch.full((case.n_prompt + case.n_new,), MASK)
    seen_T = trace.snapshot(group).ids_T
    n = min(len(seen_T), len(ids_T))
    ids_T[:n] = seen_T[:n]
    return ids_T


def _step(lm: LanguageModel, ids_T: Tensor, *, attributed: bool) -> tuple[int, int, Parts | None]:
    """One denoising step of a generator that keeps nothing."""
    hidden_TD = lm.hidden(ids_T[None])[0]
    heads = (lm.concepts.known, lm.concepts.unknown)
    tops, explained_TD = [], torch.zeros_like(hidden_TD)
    for head in heads:
        tables = head.tables()
        tops.append(merged_top(head.query(hidden_TD), tables.predictor_KQ, head.top_k))
        explained_TD = explained_TD + head.widen(gathered_sum(tables.embedding_KE, tops[-1]))
    residual_TD = hidden_TD - explained_TD
    logits_TV = lm.unembed(explained_TD + residual_TD)
    logits_TV[:, list(_NEVER)] = -torch.inf
    start = int((ids_T == MASK).nonzero()[0]) // lm.config.backbone.block
    window = slice(start * lm.config.backbone.block, (start + 1) * lm.config.backbone.block)
    certain_T = logits_TV[window].softmax(-1).max(-1).values
    certain_T[ids_T[window] != MASK] = -1.0
    position = window.start + int(certain_T.argmax())
    token = int(logits_TV[position].argmax())
    if not attributed:
        return position, token, None
    row_D = lm.head_VD[token].float()
    found = []
    for head, top in zip(heads, tops, strict=True):
        ids_k = top.ids[position]
        found.append((ids_k, top.activations[position] * (head.rows(ids_k).float() @ row_D)))
    return position, token, found


def _distance(parts: Parts, found: ConceptAttribution, group: int) -> float:
    """The largest difference of the contributions of one token; both name the same concepts."""
    mine = (
        (found.known_ids_Nk[group], found.known_Nk[group]),
        (found.unknown_ids_Nk[group], found.unknown_Nk[group]),
    )
    largest = 0.0
    for (ids_k, weight_k), (own_ids_k, own_k) in zip(parts, mine, strict=True):
        if set(ids_k.tolist()) != set(own_ids_k.tolist()):
            return float("inf")
        difference_k = weight_k[ids_k.argsort()] - own_k[own_ids_k.argsort()]
        largest = max(largest, float(difference_k.abs().max()))
    return largest


if __name__ == "__main__":
    torch.set_num_threads(1)
    for case in CASES:
        print(raced(case, repeats=2), flush=True)
