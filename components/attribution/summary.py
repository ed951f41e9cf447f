"""The summary of traced texts: how well the explanations hold, and each text for a reader.

Shape suffixes: N token   T position
"""

from collections.abc import Sequence
from dataclasses import asdict

import torch

from components.attribution.citations import Citations
from components.attribution.concept_summary import (
    chunk_concepts,
    concept_summary,
    strongest_of,
)
from components.attribution.config import AttributeConfig
from components.attribution.input_summary import input_summary
from components.attribution.names import Names
from components.attribution.tracing import TracedText
from components.index_facts import CLAIM
from model.input_attribution import votes
from model.tokenizer import Tokenizer


def summary(
    texts: Sequence[TracedText],
    names: Names,
    tokenizer: Tokenizer,
    citations: Citations,
    config: AttributeConfig,
) -> dict[str, object]:
    """Facts over all texts, then one entry a prompt."""
    return {
        "n_prompts": len(texts),
        "n_tokens": sum(len(text.positions) for text in texts),
        "concepts": concept_summary(texts, names, config),
        "inputs": input_summary(
            [text.inputs for text in texts], [text.masked for text in texts], config
        ),
        "training_claims": CLAIM,
        "prompts": [_text(text, names, tokenizer, citations, config) for text in texts],
    }


def _text(
    text: TracedText, names: Names, tokenizer: Tokenizer, citations: Citations,
    config: AttributeConfig,
) -> dict[str, object]:  # fmt: skip
    trace = text.trace
    return {
        "prompt_id": text.prompt_id,
        "origin": citations.origin(text.prompt),
        "prompt": tokenizer.decode(text.prompt.ids),
        "generated": tokenizer.decode(trace.generated),
        "stopped": trace.stopped,
        "shares": asdict(text.concepts.shares),
        "concepts": strongest_of(text, slice(None), names, config),
        "chunks": chunk_concepts(text, names, config),
        "prompt_pieces": tokenizer.pieces(text.prompt.ids),
        "prompt_weights": _prompt_weights(text),
        "tokens": [
            {
                "position": position,
                "token": piece,
                "logit": float(text.concepts.logit_N[row]),
                "confidence": float(trace.confidence_N[commit]),
                "order": commit,
            }
            for row, (position, piece, commit) in enumerate(
                zip(
                    text.positions,
                    tokenizer.pieces(trace.generated),
                    text.commits_N.tolist(),
                    strict=True,
                )
            )
        ],
        "sources": _sources(text, citations),
    }


def _sources(text: TracedText, citations: Citations) -> list[dict[str, object]]:
    """Each chunk's nearest sources, chunk by chunk."""
    return [
        {"chunk_index": number, "rank": rank, **citations.cite(found)}
        for number, chunk in enumerate(text.chunks)
        for rank, found in enumerate(chunk.sources)
    ]


def _prompt_weights(text: TracedText) -> list[float]:
    """What the prompt's tokens did for the explained ones: each has an equal vote, signs kept."""
    weight_BT = torch.stack([traced.weight_T for traced in text.inputs])
    mean_T = votes(weight_BT, text.trace.given_T).mean(0)
    weights: list[float] = mean_T[: text.trace.n_prompt].tolist()
    return weights
