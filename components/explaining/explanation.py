"""Why each generated chunk was written: inputs, concepts, training text (paper §6.1).

    known + unknown + residual  =  logit     exact, for every token; checked, not assumed
    inputs                                    integrated gradients, with what they leave over
    training text                             similar chunks; no claim of influence

Shape suffixes: N token of the text, in reading order
"""

from collections.abc import Sequence

from components.explaining.accounts import Account
from components.explaining.evidence import index_account, inputs, sources
from components.explaining.opened import Opened
from components.explaining.requests import ExplainOptions, GenerateRequest
from components.explaining.schema import (
    ChunkExplanation,
    Explanation,
    GeneratedToken,
    TokenExplanation,
)
from components.explaining.writing import (
    Heard,
    Written,
    deaf,
    reading_order,
    text_of,
    wanted,
    write,
)
from model.attribution import concept_attribution
from model.generated_chunks import chunks as generated_chunks

_GUIDED = "the text was guided: logits and their parts are those of the network that saw the prompt"
_TOLERANCE = 1e-4
"""Of the logit, or of 1 where that is more: what the parts may miss it by."""


def explain(
    opened: Opened, request: GenerateRequest, options: ExplainOptions, heard: Heard = deaf
) -> Explanation:
    """Continue a prompt and account for every token of it.

    Raises ValueError, or AbandonedError where `heard` says that nobody waits.
    """
    (written,) = write(opened, [request], heard)
    return explained(opened, written, options, heard)


def explained(
    opened: Opened, written: Written, options: ExplainOptions, heard: Heard = deaf
) -> Explanation:
    """The account of a text that was written."""
    wanted(heard, written.generation.text)
    account = accounted(opened, written)
    tokens = written.generation.tokens
    chunks = [
        slice(at.start - written.trace.n_prompt, at.stop - written.trace.n_prompt)
        for at in generated_chunks(written.trace, opened.lm.config.end_of_chunk_id)
    ]
    commits_N = reading_order(written.trace)
    owed_to = inputs(
        opened, written.trace, commits_N, chunks, options,
        lambda: wanted(heard, written.generation.text),
    )  # fmt: skip
    wanted(heard, written.generation.text)
    found = zip(
        chunks,
        owed_to,
        sources(opened, written.trace, commits_N, chunks, options.top_sources),
        strict=True,
    )
    return Explanation(
        checkpoint=opened.digest,
        generation=written.generation,
        shares=account.shares(slice(None), options.draws),
        chunks=tuple(
            ChunkExplanation(
                chunk_index=number,
                start_position=tokens[rows.start].position,
                end_position=tokens[rows.stop - 1].position + 1,
                text=text_of(opened, [token.token_id for token in tokens[rows]]),
                n_tokens=rows.stop - rows.start,
                shares=account.shares(rows, options.draws),
                concepts=account.concepts(rows, options.top_concepts),
                inputs=owed,
                sources=alike,
            )
            for number, (rows, owed, alike) in enumerate(found)
        ),
        tokens=tuple(_tokens(account, tokens, chunks, options.top_token_concepts)),
        largest_sum_error_logits=float(account.found.error_N.max()),
        index=None if opened.retriever is None else index_account(opened.retriever),
        notes=(*opened.notes, *([_GUIDED] if written.trace.guidance else [])),
    )


def accounted(opened: Opened, written: Written) -> Account:
    """Concepts of each token, in reading order. ValueError where they do not add up."""
    trace, commits_N = written.trace, reading_order(written.trace)
    state_ND, token_N = trace.state_ND[commits_N], trace.token_N[commits_N]
    logit_N = trace.logit_N[commits_N]
    if trace.guidance:  # of the network that saw the prompt: guidance is no part of any concept
        logit_N = (opened.lm.composed(state_ND) * opened.lm.head_VD[token_N]).sum(-1).detach()
    found = concept_attribution(opened.lm, state_ND, token_N, logit_N)
    worst = int((found.error_N / found.logit_N.abs().clamp_min(1.0)).argmax())
    error, logit = float(found.error_N[worst]), float(found.logit_N[worst])
    if not error <= _TOLERANCE * max(1.0, abs(logit)):
        raise ValueError(
            f"the parts of the token at position {int(trace.position_N[commits_N[worst]])} miss "
            f"its logit {logit:.4f} by {error:.2e}, above {_TOLERANCE}: the checkpoint's "
            f"bottleneck does not take its states apart. Open another checkpoint"
        )
    return Account(found, opened.vocabulary)


def _tokens(
    account: Account, tokens: Sequence[GeneratedToken], chunks: Sequence[slice], top: int
) -> list[TokenExplanation]:
    found = account.found
    chunk_of = [number for number, rows in enumerate(chunks) for _ in range(rows.start, rows.stop)]
    return [
        TokenExplanation(
            position=token.position,
            token=token.text,
            chunk_index=chunk_of[row],
            logit=float(found.logit_N[row]),
            known_logits=float(found.known_N[row]),
            unknown_logits=float(found.unknown_N[row]),
            residual_logits=float(found.residual_N[row]),
            sum_error_logits=float(found.error_N[row]),
            concepts=account.concepts(slice(row, row + 1), top) if top else (),
        )
        for row, token in enumerate(tokens)
    ]
