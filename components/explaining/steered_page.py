"""One page with two texts: as it was, and with concepts changed; what that did, what it cost."""

from collections.abc import Sequence

from components.explaining.manuscript import colours_of, legend, manuscript
from components.explaining.schema import ConceptEffect, Explanation, Steered, TextQuality, TokenEdit
from components.numerals import number
from components.page_style import LEAVES
from components.pages import Cell, Column, Fact, Markup, Section, cards, joined, note, page, table

_TITLE_CHARS = 90
_DONE = {"amplify": "amplified", "suppress": "suppressed", "replace": "replaced"}


def steered_page(found: Steered) -> str:
    """The whole page, as one file that needs nothing else."""
    request = found.before.generation.request
    prompt = " ".join((request.prompt or " ".join(map(str, request.prompt_ids))).split())
    sections = [
        Section(
            "texts", "Two texts",
            "The same prompt, settings and seed. Struck out: what only the first has; shaded: what "
            "only the second has.",
            _facing(_struck(found.edits), _added(found.edits)),
        ),
        Section(
            "effect", "What it did",
            "Read off the texts by the network left alone, each token hidden once. The grey dot is "
            "the first text, the coloured one the second.",
            _effects(found.effects),
        ),
        Section(
            "cost", "What it cost",
            "A text that repeats itself, or that the network left alone finds unlikely, was bought "
            "dearly.",
            _costs(found.quality_before, found.quality_after),
        ),
        Section(
            "concepts", "Concepts of both",
            "What did most for each chunk while it was written. The states of the second text were "
            "pushed, so its shares of the changed concepts are partly the push itself.",
            _both(found.before, found.after),
        ),
    ]  # fmt: skip
    return page(
        "Written twice",
        f"“{prompt[:_TITLE_CHARS]}{'…' if len(prompt) > _TITLE_CHARS else ''}” · checkpoint "
        f"{found.before.checkpoint[:12]}",
        sections,
        _wishes(found) + cards(_facts(found)) + joined(note(text) for text in found.notes),
        LEAVES,
    )


def _wishes(found: Steered) -> Markup:
    return Markup("<p>{}</p>").format(
        joined(
            Markup('<span class="chip {}">{} <b>{}</b> · {} logits, {}</span>').format(
                effect.action, _DONE[effect.action], effect.concept.name,
                number(effect.strength_logits), effect.strength_from,
            )
            for effect in found.effects
        )
    )  # fmt: skip


def _facts(found: Steered) -> list[Fact]:
    before, after = found.quality_before, found.quality_after
    extra = after.loss_nats_per_token - before.loss_nats_per_token
    return [
        Fact("tokens changed", float(f"{100 * found.changed_tokens_share:.3g}"), "% of both texts",
             f"n = {before.n_tokens} and {after.n_tokens}"),
        Fact("loss of the second text", after.loss_nats_per_token, "nats per token",
             f"{_signed(extra)} against the first"),
        Fact("different pairs", 100 * after.distinct_2_share, "% of neighbours",
             f"{number(100 * before.distinct_2_share)} % in the first"),
        Fact("repeated runs of four", 100 * after.repeated_share, "% of tokens",
             f"{number(100 * before.repeated_share)} % in the first"),
    ]  # fmt: skip


def _facing(before: Markup, after: Markup) -> Markup:
    return Markup(
        '<div class="facing"><article><h3>Left alone</h3><p class="verse">{}</p></article>'
        '<article><h3>Steered</h3><p class="verse">{}</p></article></div>'
    ).format(before, after)


def _struck(edits: Sequence[TokenEdit]) -> Markup:
    return joined(
        Markup("{}" if edit.kind == "same" else "<del>{}</del>").format(edit.before)
        for edit in edits
        if edit.before
    )


def _added(edits: Sequence[TokenEdit]) -> Markup:
    return joined(
        Markup("{}" if edit.kind == "same" else "<ins>{}</ins>").format(edit.after)
        for edit in edits
        if edit.after
    )


def _effects(effects: Sequence[ConceptEffect]) -> Markup:
    rows: list[list[Cell]] = [
        [
            one.concept.name, _DONE[one.action], one.strength_logits, _track(one),
            one.presence_before, one.presence_after,
            round(100 * one.signed_share_before, 4), round(100 * one.signed_share_after, 4),
        ]
        for one in effects
    ]  # fmt: skip
    columns = [
        Column("concept"), Column("wish"), Column("strength", "logits"),
        Column("presence", "0 … 1"), Column("before", "probability"),
        Column("after", "probability"), Column("share before", "% of the parts"),
        Column("share after", "% of the parts"),
    ]  # fmt: skip
    return table(columns, rows)


def _track(one: ConceptEffect) -> Markup:
    before, after = 100 * one.presence_before, 100 * one.presence_after
    return Markup(
        '<span class="track {}"><i class="way" style="left:{}%;width:{}%"></i>'
        '<i style="left:{}%"></i>'
        '<i class="after" style="left:{}%"></i></span>'
    ).format(
        "lower" if after < before else "higher", round(min(before, after), 2),
        round(abs(after - before), 2), round(before, 2), round(after, 2),
    )  # fmt: skip


def _costs(before: TextQuality, after: TextQuality) -> Markup:
    pairs = (
        ("loss", "nats per token", before.loss_nats_per_token, after.loss_nats_per_token),
        ("different pairs", "% of neighbours", 100 * before.distinct_2_share,
         100 * after.distinct_2_share),
        ("repeated runs of four", "% of tokens", 100 * before.repeated_share,
         100 * after.repeated_share),
        ("length", "tokens", before.n_tokens, after.n_tokens),
    )  # fmt: skip
    rows: list[list[Cell]] = [
        [name, unit, number(first), number(second), _signed(second - first)]
        for name, unit, first, second in pairs
    ]
    columns = [
        Column("of the text"), Column("unit"), Column("left alone"), Column("steered"),
        Column("change"),
    ]  # fmt: skip
    return table(columns, rows, "By the network left alone, half of the text hidden at a time.")


def _both(before: Explanation, after: Explanation) -> Markup:
    def side(title: str, found: Explanation) -> Markup:
        colours = colours_of(found)
        return Markup("<article><h3>{}</h3>{}{}</article>").format(
            title, legend(found, colours), manuscript(found, colours)
        )

    return Markup('<div class="facing">{}{}</div>').format(
        side("Left alone", before), side("Steered", after)
    )


def _signed(change: float) -> str:
    return f"{'+' if change > 0 else ''}{number(float(f'{change:.4g}'))}"
