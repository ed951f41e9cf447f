"""What a chunk owes to the tokens before it, and which training text is like it (paper §6.1).

Shape suffixes: N token of the text, in reading order   B target   T position   C chunk   D width
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from components.explaining.opened import Opened
from components.explaining.requests import ExplainOptions
from components.explaining.schema import (
    ChunkInputs,
    Estimate,
    IndexAccount,
    InputShare,
    TrainingSource,
)
from components.explaining.writing import pieces
from components.index_facts import Measured
from components.retrieval import Retriever, Source
from model.input_attribution import InputAttribution, aggregate, attribute, completeness_error
from model.input_attribution_config import InputAttributionConfig
from model.trace import Trace
from model.transducer import mean_states


def inputs(
    opened: Opened, trace: Trace, commits_N: Tensor, chunks: Sequence[slice],
    options: ExplainOptions, still_wanted: Callable[[], None],
) -> list[ChunkInputs | None]:  # fmt: skip
    """Inputs of some tokens of each chunk, in proportion to its length. Before each chunk it is
    asked whether they are still wanted."""
    if options.input_targets == 0:
        return [None] * len(chunks)
    config = InputAttributionConfig(max_evaluations=options.evaluations)
    tokens = pieces(opened, trace.ids_T.tolist())
    listed: list[ChunkInputs | None] = []
    for rows in chunks:
        still_wanted()
        chosen = _spread(commits_N[rows], len(commits_N), options.input_targets)
        found = attribute(opened.lm, trace, chosen, config)
        listed.append(_chunk_inputs(found, trace, tokens, options))
    return listed


def _spread(commits_N: Tensor, n_text: int, n_targets: int) -> list[int]:
    """Commits of a chunk, evenly over the order in which they were made."""
    n = min(len(commits_N), max(1, round(n_targets * len(commits_N) / n_text)))
    at_B = torch.linspace(0, len(commits_N) - 1, n).round().long()
    found: list[int] = commits_N.sort().values[at_B].tolist()
    return found


def _chunk_inputs(
    found: InputAttribution, trace: Trace, tokens: Sequence[str], options: ExplainOptions
) -> ChunkInputs:
    share_T = aggregate(found, trace, scope="all", sign="signed")
    return ChunkInputs(
        shares=tuple(
            InputShare(position=at, token=tokens[at], signed_share=float(share_T[at]))
            for at in share_T.nonzero().squeeze(-1).tolist()
        ),
        completeness_error_share=completeness_error(found.missing_B, found.gap_B),
        mean_gap_logits=float(found.gap_B.abs().mean()),
        n_targets=len(found.gap_B),
        mean_evaluations=float(found.evaluations_B.double().mean()),
        n_not_reached=int((~found.reached_B).sum()),
    )


@torch.no_grad()
def sources(
    opened: Opened, trace: Trace, commits_N: Tensor, chunks: Sequence[slice], k: int
) -> list[tuple[TrainingSource, ...]]:
    """Training chunks near the mean state of each chunk, read again as it stands."""
    if opened.retriever is None or k == 0:
        return [()] * len(chunks)
    ids_1T = trace.ids_T[None, : trace.end]
    chunk_1T = torch.full_like(ids_1T, -1)
    for number, rows in enumerate(chunks):
        chunk_1T[:, trace.position_N[commits_N[rows]]] = number
    if opened.tokenizer is not None:
        special_ids = torch.tensor(list(opened.tokenizer.special_names))
        chunk_1T = chunk_1T.masked_fill(torch.isin(ids_1T, special_ids), -1)
    state_CD = mean_states(opened.lm.hidden(ids_1T), chunk_1T, n_chunks=len(chunks))
    has_text = [bool((chunk_1T == number).any()) for number in range(len(chunks))]
    found = opened.retriever.find(state_CD, k)
    return [
        tuple(_source(rank, one) for rank, one in enumerate(mine, start=1)) if is_text else ()
        for mine, is_text in zip(found, has_text, strict=True)
    ]


def _source(rank: int, found: Source) -> TrainingSource:
    return TrainingSource(
        rank=rank, chunk_id=found.chunk_id, doc_id=found.doc_id, title=found.title,
        source=found.source, domain=found.domain, licence=found.licence, start_char=found.start,
        end_char=found.end, text=found.text, n_places=found.n_places, cosine=found.cosine,
        random_below_share=found.percentile,
    )  # fmt: skip


def index_account(retriever: Retriever) -> IndexAccount:
    """What the index was measured to find, for states of chunks it never learned from."""
    recall = retriever.facts.transducer.recall_held_back
    return IndexAccount(
        n_chunks=retriever.facts.n,
        recall_at_10=_estimate(recall.at_10),
        chance_at_10_share=min(1.0, 10 * recall.chance_at_1),
        claims=retriever.facts.claims,
    )


def _estimate(measured: Measured) -> Estimate:
    return Estimate(value=measured.value, low=measured.low, high=measured.high, n=measured.n)
