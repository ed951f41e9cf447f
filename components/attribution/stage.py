"""Attribution: what each generated token owes to concepts, to its inputs, and what training text
resembles it (paper §6.1).

    concept   known:ID × top, known:rest, unknown:ID × top, unknown:rest, residual: signed, in
              logits; they add up
    input     position:P: integrated gradients of the logit, on the snapshot that chose the token
    training  chunk:ID: cosine of the generated chunk's mean state with an indexed chunk, named with
              its source and how many random pairs are less alike

Every row belongs to a chunk of the generated text. A training row says that a chunk is similar,
not that it had an influence.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from components import contracts, prompts, retrieval
from components.attribution.citations import Citations
from components.attribution.config import AttributeConfig
from components.attribution.names import Names, names_of
from components.attribution.similar import chunk_of, ranked
from components.attribution.summary import summary
from components.attribution.tracing import TracedText, Tracer
from components.tokens import TokenStream
from model import checkpoint as checkpoints

_HELD_OUT = "test"
_TOLERANCE = 1e-4


def attribute(
    checkpoint: Path, index: Path, names: Path, tokens: Path, documents: Path, chunks: Path,
    attributions: Path, config: AttributeConfig,
) -> int:  # fmt: skip
    """Generate from held-out openings and trace every token. Returns the number of rows."""
    called = names_of(checkpoint, names)
    stream = TokenStream(tokens)
    retriever = retrieval.open_index(index, checkpoint)
    tracer = Tracer(checkpoints.load(checkpoint), stream.tokenizer, retriever, config)
    texts = [
        tracer.trace(prompt_id, prompt) for prompt_id, prompt in enumerate(_prompts(stream, config))
    ]
    for text in texts:
        _check_sum(text)
    citations = Citations(documents, chunks)
    facts = summary(texts, called, stream.tokenizer, citations, config)
    (attributions / "summary.json").write_text(json.dumps(facts, indent=1))
    rows = (
        {"prompt_id": text.prompt_id, "chunk_index": chunk_of(text.chunks)[position], **row}
        for text in texts
        for position, row in _rows(text, called, stream, config)
    )
    return contracts.write(rows, attributions, contracts.ATTRIBUTIONS)


def _prompts(stream: TokenStream, config: AttributeConfig) -> list[prompts.Prompt]:
    least, most = config.prompt_tokens_least, config.prompt_tokens_most
    lengths = np.linspace(least, most, config.n_prompts).round().astype(int).tolist()
    found = prompts.openings(stream, lengths, _HELD_OUT, config.seed)
    if not found:
        raise ValueError(
            f"no held-out document begins with a chunk of {least} tokens or more; "
            f"lower prompt_tokens_least or ingest longer documents"
        )
    return found


def _check_sum(text: TracedText) -> None:
    error_N, logit_N = text.concepts.error_N, text.concepts.logit_N
    worst = int((error_N / logit_N.abs().clamp_min(1.0)).argmax())
    if error_N[worst] > _TOLERANCE * max(1.0, abs(float(logit_N[worst]))):
        raise ValueError(
            f"concepts of the token at position {text.positions[worst]} of prompt "
            f"{text.prompt_id} miss its logit {float(logit_N[worst]):.4f} by "
            f"{float(error_N[worst]):.2e}, above {_TOLERANCE}: the checkpoint's bottleneck does "
            f"not take its states apart"
        )


def _rows(
    text: TracedText, names: Names, stream: TokenStream, config: AttributeConfig
) -> Iterator[tuple[int, dict[str, object]]]:
    """Rows with the position they speak of."""
    pieces = stream.tokenizer.pieces(text.trace.ids_T.tolist())
    for row, position in enumerate(text.positions):
        contributions = names.contributions(text.concepts, row, config.top_concepts)
        for rank, (ref, name, weight) in enumerate(contributions):
            yield _row(position, pieces[position], "concept", ref, name, weight, rank)
    for traced in text.inputs:
        strongest = traced.weight_T.abs().topk(min(config.top_inputs, len(traced.weight_T)))
        for rank, source in enumerate(strongest.indices.tolist()):
            weight = float(traced.weight_T[source])
            if weight != 0.0:
                yield _row(
                    traced.position, pieces[traced.position], "input", f"position:{source}",
                    pieces[source], weight, rank,
                )  # fmt: skip
    for position, rank, name, found in ranked(text.chunks):
        ref = f"chunk:{found.chunk_id}"
        yield _row(position, pieces[position], "training", ref, name, found.cosine, rank)


def _row(
    position: int, token: str, kind: str, ref: str, name: str, weight: float, rank: int
) -> tuple[int, dict[str, object]]:
    return position, {
        "position": position, "token": token, "kind": kind, "ref": ref, "name": name,
        "weight": weight, "rank": rank,
    }  # fmt: skip
