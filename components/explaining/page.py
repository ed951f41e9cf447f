"""One page that says why a text was written: the text with its glosses, then the evidence.

    manuscript   the text in its chunks, tokens in the colour of their concept, glosses beside
    evidence     shares, concepts, inputs and training text of one chunk
    account      every token's logit as a sum

Everything that comes from a prompt, a corpus or a library is escaped by `components.pages`.
"""

from collections.abc import Sequence

from components.explaining.manuscript import Colours, colours_of, legend, manuscript
from components.explaining.schema import (
    ChunkExplanation,
    ConceptContribution,
    Estimate,
    Explanation,
    Shares,
    TokenExplanation,
)
from components.explaining.sources_list import sources_list
from components.numerals import number
from components.page_style import LEAVES
from components.pages import (
    Cell,
    Column,
    Fact,
    Markup,
    Section,
    cards,
    folded,
    joined,
    note,
    page,
    side_by_side,
    table,
)
from components.shades import heat, signed_bar, stacked, swatch

_OPEN_CHUNKS = 3
_SHADED_TOKENS = 240
_TITLE_CHARS = 90
_TOKEN_ROWS = 400


def explanation_page(found: Explanation) -> str:
    """The whole page, as one file that needs nothing else."""
    colours = colours_of(found)
    sections = [
        Section(
            "text", "The text",
            "The prompt in grey, then what the network wrote, chunk by chunk. A token has the "
            "colour of the named concept that did most for it; the glosses say what did most for "
            "the chunk, with and without a name.",
            legend(found, colours) + manuscript(found, colours),
        ),
        Section(
            "evidence", "Chunk by chunk",
            "What each chunk is made of, which tokens it hangs on, and which training text is "
            "like it.",
            joined(
                folded(
                    f"{chunk.chunk_index + 1} · {_cut(chunk.text.strip(), _TITLE_CHARS)}",
                    _evidence(found, chunk, colours),
                    is_open=number_of < _OPEN_CHUNKS,
                )
                for number_of, chunk in enumerate(found.chunks)
            ),
        ),
        Section(
            "tokens", "Token by token",
            "The exact account: known, unknown and residual add up to the logit of each token.",
            folded(f"{len(found.tokens)} tokens", _token_table(found.tokens)),
        ),
        Section("reading", "How to read this", "What the numbers mean, and what they do not.",
                _reading(found)),
    ]  # fmt: skip
    request = found.generation.request
    prompt = request.prompt or " ".join(map(str, request.prompt_ids))
    return page(
        "Why it wrote this",
        f"“{_cut(prompt, _TITLE_CHARS)}”, continued by {len(found.tokens)} tokens · "
        f"checkpoint {found.checkpoint[:12]}",
        sections,
        cards(_facts(found)) + joined(note(text) for text in found.notes),
        LEAVES,
    )


def _evidence(found: Explanation, chunk: ChunkExplanation, colours: Colours) -> Markup:
    parts = stacked([
        ("known concepts", chunk.shares.known_share.value),
        ("unknown concepts", chunk.shares.unknown_share.value),
        ("residual", chunk.shares.residual_share.value),
    ])  # fmt: skip
    intervals = Markup('<p class="lead">95% intervals over n = {} tokens: {}</p>').format(
        chunk.n_tokens, _intervals(chunk.shares)
    )
    return (
        Markup("<p>{}</p>").format(parts)
        + intervals
        + side_by_side(
            Markup("<h3>Concepts</h3>") + _concept_table(chunk.concepts, colours),
            _inputs(found, chunk),
        )
        + Markup("<h3>Training text like it</h3>")
        + sources_list(chunk.sources, found.index)
    )


def _concept_table(concepts: Sequence[ConceptContribution], colours: Colours) -> Markup:
    largest = max((abs(one.signed_share) for one in concepts), default=0.0)
    rows: list[list[Cell]] = [
        [
            Markup("{}{}").format(swatch(colours.get((one.kind, one.concept_id), -1)), one.name),
            signed_bar(one.signed_share, largest),
            100 * one.signed_share,
            one.contribution_logits,
            one.n_tokens,
        ]
        for one in concepts
    ]
    columns = [
        Column("concept"), Column("against … for"), Column("share", "% of the parts"),
        Column("adds", "logits a token"), Column("at", "tokens"),
    ]  # fmt: skip
    return table(columns, rows)


def _inputs(found: Explanation, chunk: ChunkExplanation) -> Markup:
    if chunk.inputs is None:
        return Markup('<h3>What it hangs on</h3><p class="lead">Inputs were not asked for.</p>')
    whole = [
        *found.generation.prompt_tokens, *(token.text for token in found.generation.tokens)
    ]  # fmt: skip
    share_of = {one.position: one.signed_share for one in chunk.inputs.shares}
    last = max(chunk.end_position, 1 + max(share_of, default=0))
    first = max(0, last - _SHADED_TOKENS)
    unseen = sum(abs(share) for at, share in share_of.items() if at < first)
    cut = f" The {first} tokens before these carry {number(100 * unseen)} %." if first else ""
    return (
        Markup("<h3>What it hangs on</h3>")
        + heat((whole[at], share_of.get(at, 0.0)) for at in range(first, min(last, len(whole))))
        + Markup('<p class="lead">{}</p>').format(
            f"Tokens that raised the logits of this chunk, and those that lowered them. The "
            f"weights miss the whole effect of {number(chunk.inputs.mean_gap_logits)} logits by "
            f"{number(100 * chunk.inputs.completeness_error_share)} %, over n = "
            f"{chunk.inputs.n_targets} of its tokens.{cut}"
        )
    )


def _token_table(tokens: Sequence[TokenExplanation]) -> Markup:
    rows: list[list[Cell]] = [
        [
            token.position, Markup("<code>{}</code>").format(repr(token.token)[1:-1]),
            token.logit, token.known_logits, token.unknown_logits, token.residual_logits,
            ", ".join(f"{one.name} {number(one.contribution_logits)}" for one in token.concepts),
        ]
        for token in tokens[:_TOKEN_ROWS]
    ]  # fmt: skip
    columns = [
        Column("position"), Column("token"), Column("logit"), Column("known", "logits"),
        Column("unknown", "logits"), Column("residual", "logits"), Column("most", "logits"),
    ]  # fmt: skip
    rest = len(tokens) - _TOKEN_ROWS
    more = note(f"{rest} more tokens stand in the JSON.") if rest > 0 else Markup()
    return table(columns, rows) + more


def _facts(found: Explanation) -> list[Fact]:
    shares = found.shares
    facts = [
        Fact("known concepts carry", _share(shares.known_share), "% of the logits",
             f"95% {_interval(shares.known_share)}"),
        Fact("unknown concepts", _share(shares.unknown_share), "% of the logits",
             f"95% {_interval(shares.unknown_share)}"),
        Fact("residual", _share(shares.residual_share), "% of the logits",
             f"95% {_interval(shares.residual_share)}"),
        Fact("parts miss the logit by", found.largest_sum_error_logits, "logits",
             f"the worst of {len(found.tokens)} tokens"),
    ]  # fmt: skip
    inputs = [chunk.inputs for chunk in found.chunks if chunk.inputs is not None]
    if inputs:
        n = sum(one.n_targets for one in inputs)
        missed = sum(one.completeness_error_share * one.mean_gap_logits * one.n_targets
                     for one in inputs)  # fmt: skip
        gap = sum(one.mean_gap_logits * one.n_targets for one in inputs)
        facts.append(Fact("inputs miss", _digits(100 * missed / max(gap, 1e-12)),
                          "% of the effect", f"integrated gradients, n = {n} tokens"))  # fmt: skip
    if found.index is not None:
        facts.append(
            Fact("an index that finds", _share(found.index.recall_at_10), "% in its first 10",
                 f"by state, n = {found.index.recall_at_10.n}; by chance "
                 f"{number(_digits(100 * found.index.chance_at_10_share))} %")
        )  # fmt: skip
    return facts


def _reading(found: Explanation) -> Markup:
    lines = [
        "A logit is the sum of three parts: known concepts, which the library named; unknown ones, "
        "which nobody supervised; and the residual, which no concept carries. The residual is "
        "computed by itself, so the sum is a check that could fail.",
        "A share is the magnitude of a part by that of all three; it does not cancel. A concept's "
        "share keeps its sign: below zero it spoke against the tokens that were written.",
        "A concept says what the network represented, not why the world is so. With a small known "
        "share, known concepts are a minor part of the account.",
        "Inputs are integrated gradients from [MASK], the network's own “no information”; each of "
        "the explained tokens has an equal vote.",
        "Training text is similar in meaning, in the eyes of the chunk encoder. That is no claim "
        "of influence: a chunk that is shown may never have mattered.",
    ]
    settings = found.generation.request.sampling.model_dump()
    rows: list[list[Cell]] = [[name, str(value)] for name, value in settings.items()]
    return joined(Markup("<p>{}</p>").format(line) for line in lines) + folded(
        "How the text was drawn", table([Column("setting"), Column("value")], rows)
    )


def _share(one: Estimate) -> float:
    """In percent, as many digits as a card can hold."""
    return _digits(100 * one.value)


def _digits(value: float) -> float:
    return float(f"{value:.3g}")


def _intervals(shares: Shares) -> str:
    named = (
        ("known", shares.known_share), ("unknown", shares.unknown_share),
        ("residual", shares.residual_share),
    )  # fmt: skip
    return ", ".join(f"{name} {_interval(share)}" for name, share in named)


def _interval(share: Estimate) -> str:
    return f"{number(round(100 * share.low, 2))} – {number(round(100 * share.high, 2))} %"


def _cut(text: str, most: int) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= most else f"{plain[:most]}…"
