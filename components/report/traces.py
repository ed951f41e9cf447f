"""Generated texts, taken apart: input tokens, concepts, similar training chunks (paper §6.1)."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from components import contracts
from components.pages import (
    Cell,
    Column,
    Fact,
    Markup,
    Section,
    cards,
    folded,
    joined,
    quote,
    side_by_side,
    table,
)
from components.report import traced_inputs
from components.report.config import ReportConfig
from components.report.inputs import read_json, read_table
from components.shades import N_COLOURS, heat, signed_bar, stacked, swatch, tinted


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Shares(_Part):
    known: float
    unknown: float
    residual: float


class _Token(_Part):
    position: int
    token: str


class _Concept(_Part):
    concept_id: int
    name: str
    share: float


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
    concepts: list[_Concept]
    prompt_pieces: list[str]
    prompt_weights: list[float]
    tokens: list[_Token]
    sources: list[_Source]


class _Concepts(_Part):
    shares: _Shares
    largest_sum_error_logits: float


class Traced(_Part):
    """`summary.json` of Attributions, as far as it is shown."""

    n_prompts: int
    n_tokens: int
    concepts: _Concepts
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
            Fact("sum of a token's parts", found.concepts.largest_sum_error_logits, "logits off",
                 "concepts and residual against the network's own logit, the worst token"),
            *traced_inputs.facts(found.inputs),
            Fact("known concepts carry", 100 * found.concepts.shares.known, "% of logits",
                 "in absolute value, over all tokens"),
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
        + folded("Do the shaded inputs matter?", traced_inputs.masking(found.inputs)),
    )  # fmt: skip


def _panel(
    text: _Text, contributions: Mapping[int, Mapping[int, float]], config: ReportConfig
) -> Markup:
    shown = text.concepts[: config.n_contributions]
    colour = {concept.concept_id: i for i, concept in enumerate(shown[:N_COLOURS])}
    return (
        Markup("<h3>Prompt, shaded by what it did for the text</h3>")
        + heat(zip(text.prompt_pieces, text.prompt_weights, strict=True))
        + Markup("<h3>What it wrote, coloured by the concept that spoke most for each token</h3>")
        + tinted(_tints(text.tokens, contributions, colour, shown))
        + side_by_side(_concepts(shown, colour), _sources(text.sources, config))
        + Markup("<p>{}</p>").format(
            stacked([("known concepts", text.shares.known), ("unknown", text.shares.unknown),
                     ("residual", text.shares.residual)])
        )
    )  # fmt: skip


def _tints(
    tokens: Sequence[_Token],
    contributions: Mapping[int, Mapping[int, float]],
    colour: Mapping[int, int],
    shown: Sequence[_Concept],
) -> list[tuple[str, int, float, str]]:
    """Token, colour, strength from 0 to 1, and what stands in its tooltip."""
    names = {concept.concept_id: concept.name for concept in shown}
    largest = max(
        (weight for parts in contributions.values() for weight in parts.values()), default=0.0
    )
    found = []
    for token in tokens:
        parts = contributions.get(token.position, {})
        coloured = {c: w for c, w in parts.items() if c in colour and w > 0}
        best = max(coloured, key=lambda c: coloured[c], default=-1)
        said = ", ".join(f"{names[c]} {w:+.2f}" for c, w in parts.items() if c in names)
        strength = coloured[best] / largest if coloured else 0.0
        found.append((token.token, colour.get(best, -1), strength, said))
    return found


def _contributions(attributions: Path) -> dict[int, dict[int, dict[int, float]]]:
    """Logits by prompt, position and known concept, the strongest of each token."""
    rows = read_table(
        attributions, contracts.ATTRIBUTIONS, "prompt_id", "position", "kind", "ref", "weight"
    ).to_pylist()
    found: dict[int, dict[int, dict[int, float]]] = {}
    for row in rows:
        ref = str(row["ref"]).removeprefix("known:")
        if row["kind"] == "concept" and ref.isdecimal():
            parts = found.setdefault(row["prompt_id"], {}).setdefault(row["position"], {})
            parts[int(ref)] = float(row["weight"])
    return found


def _concepts(shown: Sequence[_Concept], colour: Mapping[int, int]) -> Markup:
    largest = max((abs(concept.share) for concept in shown), default=0.0)
    rows: list[list[Cell]] = [
        [
            Markup("{}{}").format(swatch(colour.get(concept.concept_id, -1)), concept.name),
            signed_bar(concept.share, largest),
            100 * concept.share,
        ]
        for concept in shown
    ]
    return table(
        [Column("concept"), Column("against … for"), Column("share", "% of the logits")], rows
    )


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
