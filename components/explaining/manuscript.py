"""A text in its chunks, tokens in the colour of their concept, and glosses in the margin.

Everything that comes from a prompt, a corpus or a library is escaped by `components.pages`.
"""

from collections.abc import Mapping, Sequence

from components.explaining.schema import (
    ChunkExplanation,
    ConceptContribution,
    Explanation,
    Kind,
    Shares,
    TokenExplanation,
)
from components.explaining.vocabulary import is_named
from components.numerals import number
from components.pages import Markup, joined
from components.shades import N_COLOURS, swatch, tinted

Colours = Mapping[tuple[Kind, int], int]

_GLOSSED, _NAMELESS = 4, 2
"""Concepts in the margin: those with a name, and those without."""


def colours_of(found: Explanation) -> Colours:
    """A colour for each of the named concepts that did most for the text as a whole."""
    weight: dict[tuple[Kind, int], float] = {}
    for chunk in found.chunks:
        for one in filter(_is_named, chunk.concepts):
            at = (one.kind, one.concept_id)
            weight[at] = weight.get(at, 0.0) + chunk.n_tokens * abs(one.signed_share)
    strongest = sorted(weight, key=lambda at: -weight[at])[:N_COLOURS]
    return {at: colour for colour, at in enumerate(strongest)}


def legend(found: Explanation, colours: Colours) -> Markup:
    """The names behind the colours."""
    names = {
        (one.kind, one.concept_id): one.name for chunk in found.chunks for one in chunk.concepts
    }
    return Markup('<p class="legend">{}</p>').format(
        joined(
            Markup("<span>{}{}</span>").format(swatch(colour), names[at])
            for at, colour in colours.items()
        )
    )


def manuscript(found: Explanation, colours: Colours) -> Markup:
    """The text with its glosses."""
    by_chunk: dict[int, list[TokenExplanation]] = {}
    for token in found.tokens:
        by_chunk.setdefault(token.chunk_index, []).append(token)
    largest = max(
        (abs(one.contribution_logits) for token in found.tokens for one in token.concepts),
        default=0.0,
    )
    leaves = [_leaf(chunk, by_chunk[chunk.chunk_index], colours, largest) for chunk in found.chunks]
    shown = [piece for piece in found.generation.prompt_tokens if not _is_special(piece)]
    prompt = Markup(
        '<div class="leaf prompt"><p class="verse">{}</p><div class="gloss">the prompt, {} tokens'
        "</div></div>"
    ).format("".join(shown), len(found.generation.prompt_tokens))
    return prompt + joined(leaves)


def _leaf(
    chunk: ChunkExplanation, tokens: Sequence[TokenExplanation], colours: Colours, largest: float
) -> Markup:
    named = [one for one in chunk.concepts if _is_named(one)][:_GLOSSED]
    glossed = [*named, *[one for one in chunk.concepts if not _is_named(one)][:_NAMELESS]]
    glosses = joined(
        Markup("<li>{}<span>{}</span><small>{} %</small></li>").format(
            swatch(colours.get((one.kind, one.concept_id), -1)), one.name, _percent(one)
        )
        for one in glossed
    )
    like = Markup()
    if chunk.sources:
        like = Markup("<div>like <b>{}</b>, {}, cosine {}</div>").format(
            chunk.sources[0].title, chunk.sources[0].source, f"{chunk.sources[0].cosine:.2f}"
        )
    return Markup(
        '<div class="leaf"><p class="verse">{}</p><div class="gloss"><b>chunk {}</b> · '
        "known {} %, unknown {} %, residual {} %<ul>{}</ul>{}</div></div>"
    ).format(
        joined(_token(token, colours, largest) for token in tokens), chunk.chunk_index + 1,
        *_three(chunk.shares), glosses, like,
    )  # fmt: skip


def _token(token: TokenExplanation, colours: Colours, largest: float) -> Markup:
    if _is_special(token.token):
        return Markup('<span class="end">{}</span>').format(token.token.strip("<|>"))
    coloured = [one for one in token.concepts if (one.kind, one.concept_id) in colours]
    best = max(coloured, key=lambda one: one.contribution_logits, default=None)
    colour, strength = -1, 0.0
    if best is not None and best.contribution_logits > 0 and largest > 0:
        colour = colours[best.kind, best.concept_id]
        strength = best.contribution_logits / largest
    parts = ", ".join(f"{one.name} {number(one.contribution_logits)}" for one in token.concepts)
    said = (
        f"logit {number(token.logit)} = known {number(token.known_logits)} + unknown "
        f"{number(token.unknown_logits)} + residual {number(token.residual_logits)}; {parts}"
    )
    return tinted_token(token.token, colour, strength, said)


def tinted_token(token: str, colour: int, strength: float, said: str) -> Markup:
    """One token of `shades.tinted`, without its paragraph."""
    whole = tinted([(token, colour, strength, said)])
    return Markup(whole.removeprefix('<p class="heat">').removesuffix("</p>"))


def _three(shares: Shares) -> list[str]:
    parts = (shares.known_share, shares.unknown_share, shares.residual_share)
    return [number(round(100 * share.value, 1)) for share in parts]


def _is_named(one: ConceptContribution) -> bool:
    return is_named(one.kind, one.name)


def _percent(one: ConceptContribution) -> str:
    return number(float(f"{100 * one.signed_share:.2g}"))


def _is_special(piece: str) -> bool:
    return piece.startswith("<|") and piece.endswith("|>")
