"""Generated texts, taken apart: input tokens, concepts, similar training chunks (paper §6.1)."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from components import contracts
from components.pages import (
    Fact,
    Markup,
    Section,
    cards,
    folded,
    joined,
    quote,
    side_by_side,
)
from components.report import traced_concepts, traced_inputs
from components.report.config import ReportConfig
from components.report.inputs import read_json, read_table
from components.report.traced_concepts import Concept
from components.shades import N_COLOURS, heat, stacked, tinted


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Shares(_Part):
    known: float
    unknown: float
    residual: float


class _Token(_Part):
    position: int
    token: str


class _Origin(_Part):
    split: str
    title: str
    domain: str


class _Source(_Part):
    chunk_index: int
    rank: int
    cosine: float
    random_below_share: float
    text: str
    title: str
    source: str
    licence: str


class _Text(_Part):
    prompt_id: int
    origin: _Origin
    shares: _Shares
    concepts: list[Concept]
    prompt_pieces: list[str]
    prompt_weights: list[float]
    tokens: list[_Token]
    sources: list[_Source]


class Traced(_Part):
    """`summary.json` of Attributions, as far as it is shown."""

    n_prompts: int
    n_tokens: int
    concepts: traced_concepts.Concepts
    inputs: traced_inputs.Inputs
    prompts: list[_Text]


def read(attributions: Path) -> Traced:
    """The summary of a verified artifact."""
    return Traced.model_validate_json(
        read_json(attributions, contracts.ATTRIBUTIONS, "summary.json")
    )


def section(attributions: Path, config: ReportConfig) -> Section:
    """How far the explanations hold, then one panel a generated text, the first one open."""
    found = read(attributions)
    facts = cards(
        [
            Fact("texts", found.n_prompts, note=f"{found.n_tokens} generated tokens explained"),
            *traced_concepts.facts(found.concepts),
            *traced_inputs.facts(found.inputs),
        ]
    )  # fmt: skip
    by_text = _contributions(attributions)
    panels = joined(
        folded(
            f"{text.origin.title} — {text.origin.domain}, {text.origin.split}",
            _panel(text, by_text.get(text.prompt_id, {}), config),
            is_open=i == 0,
        )
        for i, text in enumerate(found.prompts)
    )
    return Section(
        "traces", "Traced texts",
        "The network continues the opening of a document it never saw, and every token it writes "
        "is accounted for. Nothing here is fitted afterwards: concepts are parts of the sum that "
        "chose the token. Similar training text is similar in meaning; it proves no influence.",
        facts
        + panels
        + folded("Do the concepts matter?", traced_concepts.removal(found.concepts))
        + folded("Do the shaded inputs matter?", traced_inputs.masking(found.inputs)),
    )  # fmt: skip


def _panel(
    text: _Text, contributions: Mapping[int, Mapping[str, float]], config: ReportConfig
) -> Markup:
    shown = traced_concepts.shown(text.concepts, config.n_contributions)
    colour = {concept.ref: i for i, concept in enumerate(shown[:N_COLOURS])}
    return (
        Markup("<h3>Prompt, shaded by what it did for the text</h3>")
        + heat(zip(text.prompt_pieces, text.prompt_weights, strict=True))
        + Markup("<h3>What it wrote, coloured by the concept that spoke most for each token</h3>")
        + tinted(_tints(text.tokens, contributions, colour, shown))
        + side_by_side(traced_concepts.listed(shown, colour), _sources(text.sources, config))
        + Markup("<p>{}</p>").format(
            stacked([("known concepts", text.shares.known), ("unknown", text.shares.unknown),
                     ("residual", text.shares.residual)])
        )
    )  # fmt: skip


def _tints(
    tokens: Sequence[_Token],
    contributions: Mapping[int, Mapping[str, float]],
    colour: Mapping[str, int],
    shown: Sequence[Concept],
) -> list[tuple[str, int, float, str]]:
    """Token, colour, strength from 0 to 1, and what stands in its tooltip."""
    names = {concept.ref: concept.name for concept in shown}
    largest = max(
        (weight for parts in contributions.values() for weight in parts.values()), default=0.0
    )
    found = []
    for token in tokens:
        parts = contributions.get(token.position, {})
        coloured = {c: w for c, w in parts.items() if c in colour and w > 0}
        best = max(coloured, key=lambda c: coloured[c], default="")
        said = ", ".join(f"{names[c]} {w:+.2f}" for c, w in parts.items() if c in names)
        strength = coloured[best] / largest if coloured else 0.0
        found.append((token.token, colour.get(best, -1), strength, said))
    return found


def _contributions(attributions: Path) -> dict[int, dict[int, dict[str, float]]]:
    """Logits by prompt, position and concept, the strongest of each token."""
    rows = read_table(
        attributions, contracts.ATTRIBUTIONS, "prompt_id", "position", "kind", "ref", "weight"
    ).to_pylist()
    found: dict[int, dict[int, dict[str, float]]] = {}
    for row in rows:
        kind, _, concept = str(row["ref"]).partition(":")
        if kind in ("known", "unknown") and concept.isdecimal():
            parts = found.setdefault(row["prompt_id"], {}).setdefault(row["position"], {})
            parts[str(row["ref"])] = float(row["weight"])
    return found


def _sources(sources: Sequence[_Source], config: ReportConfig) -> Markup:
    """The nearest of each chunk first, then the second of each."""
    nearest = sorted(sources, key=lambda source: (source.rank, source.chunk_index))
    return Markup("<h3>Nearest training chunks</h3>") + joined(
        Markup(
            "<p><b>{}</b> · {} · {} · chunk {} · cosine {:.2f}, above {:.1f}% of random pairs</p>{}"
        ).format(
            source.title, source.source, source.licence, source.chunk_index + 1, source.cosine,
            100 * source.random_below_share, quote(cut(source.text, config.max_text_chars)),
        )
        for source in nearest[: config.n_sources]
    )  # fmt: skip


def cut(text: str, n_chars: int) -> str:
    """At most so many characters, with a mark where something was left out."""
    return text if len(text) <= n_chars else text[: n_chars - 1].rstrip() + "…"
