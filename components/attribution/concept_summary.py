"""How well concepts account for all texts: their shares, and what removing one did against what was
foretold.

Exact is what happens to a logit at the bottleneck; everything else is told apart from it. Intervals
are over prompts: tokens of one text never pretend to be independent.

Shape suffixes: N token of a text, in reading order   3 known, unknown, residual   C concept
    B commit
"""

from collections.abc import Sequence
from dataclasses import asdict

import torch

from components.attribution.agreement import agreement, over_prompts
from components.attribution.config import AttributeConfig
from components.attribution.names import Names
from components.attribution.tracing import TracedText
from model import attribution
from model.attribution import ConceptAttribution
from model.concept_shares import ConceptShare, part_shares, strongest, token_shares

_DRAWS = 1_000
_PARTS = ("known", "unknown", "residual")


def concept_summary(
    texts: Sequence[TracedText], names: Names, config: AttributeConfig
) -> dict[str, object]:
    """Facts over all prompts; units are in the names."""
    found = [text.concepts for text in texts]
    wholes = attribution.shares(
        torch.cat([one.known_N for one in found]),
        torch.cat([one.unknown_N for one in found]),
        torch.cat([one.residual_N for one in found]),
    )
    return {
        "shares": asdict(wholes),
        "known_only_share": _known_only(found, config.seed),
        "concept_by_concept": _shares(found, config.seed),
        "largest_sum_error_logits": max(float(one.error_N.max()) for one in found),
        "largest_unknown_sum_error_logits": max(
            float((one.unknown_Nk.sum(-1) - one.unknown_N).abs().max()) for one in found
        ),
        "unknown_names": dict(names.unknown.facts),
        "named_unknown_share": _named(found, names, config.seed),
        "removal": agreement([text.removals for text in texts], config.seed),
    }


def chunk_concepts(
    text: TracedText, names: Names, config: AttributeConfig
) -> list[dict[str, object]]:
    """Each chunk's shares, with intervals over its tokens, and the concepts that did most."""
    return [
        {
            "chunk_index": number,
            "positions": list(chunk.positions),
            "shares": asdict(part_shares(text.concepts, rows, draws=_DRAWS, seed=config.seed)),
            "concepts": strongest_of(text, rows, names, config),
        }
        for number, (chunk, rows) in enumerate(zip(text.chunks, text.rows, strict=True))
    ]


def strongest_of(
    text: TracedText, rows: slice, names: Names, config: AttributeConfig
) -> list[dict[str, object]]:
    """The known concepts that did most for some tokens, and as many unknown ones.

    Each kind by the size of its shares: on one scale the one that carries more hides the other.
    """
    listed = strongest(text.concepts, rows)
    return [
        _told(one, names)
        for kind in ("known", "unknown")
        for one in [one for one in listed if one.concept.kind == kind][: config.top_chunk_concepts]
    ]


def _told(one: ConceptShare, names: Names) -> dict[str, object]:
    return {
        "kind": one.concept.kind, "concept_id": one.concept.id, "name": names.of(one.concept),
        "share": one.share, "mean_logits": one.logits, "n_tokens": one.n_tokens,
    }  # fmt: skip


def _known_only(found: Sequence[ConceptAttribution], seed: int) -> dict[str, object]:
    """|Σ known| of |Σ known| + |û·W| + |ε·W|: what the library alone accounts for."""
    totals = [one.known_N.abs() + one.unknown_N.abs() + one.residual_N.abs() for one in found]
    return over_prompts([one.known_N.abs() for one in found], totals, seed)


def _shares(found: Sequence[ConceptAttribution], seed: int) -> dict[str, object]:
    """Mean shares of a token, absolute and signed, each concept counted by itself."""
    shares = [token_shares(one) for one in found]
    ones = [torch.ones(len(one.absolute_N3)) for one in shares]
    return {
        f"{name}{suffix}": over_prompts([column[:, part] for column in columns], ones, seed)
        for suffix, columns in (
            ("", [one.absolute_N3 for one in shares]),
            ("_signed", [one.signed_N3 for one in shares]),
        )
        for part, name in enumerate(_PARTS)
    }


def _named(found: Sequence[ConceptAttribution], names: Names, seed: int) -> dict[str, object]:
    """Of what unknown concepts contributed to these texts: the part of those with a name."""
    named = torch.tensor(sorted(names.unknown.named), dtype=torch.int64)
    sizes = [one.unknown_Nk.abs() for one in found]
    mine = [
        size_Nk.where(torch.isin(one.unknown_ids_Nk, named), 0.0).sum(-1)
        for one, size_Nk in zip(found, sizes, strict=True)
    ]
    return over_prompts(mine, [size_Nk.sum(-1) for size_Nk in sizes], seed)
