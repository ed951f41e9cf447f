"""What `explain` and `steer` show a person. Prompts and corpora reach a terminal as plain text."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from components.explaining.schema import (
    ChunkExplanation,
    ConceptContribution,
    ConceptEffect,
    Estimate,
    Explanation,
    Steered,
    TextQuality,
    TrainingSource,
)
from pipelines.concepts_tables import console, plain

_TEXT_CHARS = 160
_CONCEPTS = 5
_SOURCES = 3


def explanation(found: Explanation) -> None:
    """The text, then each chunk with its three attributions."""
    screen = console()
    _heading(screen, "prompt", _prompt(found))
    for chunk in found.chunks:
        screen.print()
        _chunk(screen, chunk)
    screen.print()
    _line(screen, f"all {len(found.tokens)} tokens: known {_share(found.shares.known_share)}, "
                  f"unknown {_share(found.shares.unknown_share)}, residual "
                  f"{_share(found.shares.residual_share)} of the logits")  # fmt: skip
    _line(screen, f"parts miss the logit by {found.largest_sum_error_logits:.1e} at the worst")
    if found.index is not None:
        recall = found.index.recall_at_10
        _line(screen, f"training text is {found.index.claims}; the index finds {_share(recall)} of "
                      f"chunks it never saw, by their states, among the first 10 "
                      f"(n = {recall.n})")  # fmt: skip
    _notes(screen, found.notes)


def steered(found: Steered) -> None:
    """Both texts, what changed, what it cost."""
    screen = console()
    _heading(screen, "prompt", _prompt(found.before))
    for title, text in (("left alone", found.before.generation.text),
                        ("steered", found.after.generation.text)):  # fmt: skip
        screen.print()
        _heading(screen, title, "")
        _verse(screen, text)
    screen.print()
    screen.print(_effects(found.effects))
    screen.print(_costs(found.quality_before, found.quality_after))
    _line(screen, f"{found.changed_tokens_share:.0%} of the tokens of both texts changed")
    _notes(screen, found.notes)


def _chunk(screen: Console, chunk: ChunkExplanation) -> None:
    _heading(screen, f"chunk {chunk.chunk_index + 1}", "")
    _verse(screen, chunk.text)
    shares = chunk.shares
    _line(screen, f"  known {_share(shares.known_share)}, unknown {_share(shares.unknown_share)}, "
                  f"residual {_share(shares.residual_share)}")  # fmt: skip
    if chunk.concepts:
        for kind in ("known", "unknown"):
            mine = [one for one in chunk.concepts if one.kind == kind]
            screen.print(_concepts(kind, mine[:_CONCEPTS]))
    if chunk.inputs is not None:
        strongest = sorted(chunk.inputs.shares, key=lambda one: -abs(one.signed_share))[:_CONCEPTS]
        listed = ", ".join(f"{one.token.strip(' ')!r} {one.signed_share:+.2f}"
                           for one in strongest)  # fmt: skip
        _line(screen, f"  hangs on {listed}; these weights miss "
                      f"{chunk.inputs.completeness_error_share:.1%} of the effect")  # fmt: skip
    for source in chunk.sources[:_SOURCES]:
        _line(screen, f"  {_source(source)}", "dim")


def _concepts(kind: str, concepts: Sequence[ConceptContribution]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 2), show_edge=False)
    columns = ((f"{kind} concepts", "left"), ("share", "right"), ("logits a token", "right"))
    for name, side in columns:
        table.add_column(name, justify="right" if side == "right" else "left", overflow="fold")
    for one in concepts:
        table.add_row(Text(plain(one.name)), f"{one.signed_share:+.2%}",
                      f"{one.contribution_logits:+.4f}")  # fmt: skip
    return table


def _source(one: TrainingSource) -> str:
    text = " ".join(one.text.split())
    shown = text if len(text) <= _TEXT_CHARS else f"{text[:_TEXT_CHARS]}…"
    return (
        f"{one.cosine:.2f}  {one.title} ({one.source}, {one.licence}; {one.doc_id}, characters "
        f"{one.start_char}–{one.end_char}): {shown}"
    )


def _effects(effects: Sequence[ConceptEffect]) -> Table:
    table = Table(title=Text("what it did"), title_justify="left")
    for name in ("concept", "wish"):
        table.add_column(name, overflow="fold")
    for name in ("strength, logits", "presence before", "after", "share before", "after"):
        table.add_column(name, justify="right")
    for one in effects:
        table.add_row(
            Text(plain(one.concept.name)), f"{one.action}, {one.strength_from}",
            f"{one.strength_logits:g}", f"{one.presence_before:.3f}", f"{one.presence_after:.3f}",
            f"{one.signed_share_before:+.2%}", f"{one.signed_share_after:+.2%}",
        )  # fmt: skip
    return table


def _costs(before: TextQuality, after: TextQuality) -> Table:
    table = Table(title=Text("what it cost"), title_justify="left")
    table.add_column("of the text")
    for name in ("left alone", "steered", "change"):
        table.add_column(name, justify="right")
    for name, first, second, digits in (
        ("loss, nats per token", before.loss_nats_per_token, after.loss_nats_per_token, 3),
        ("different pairs, %", 100 * before.distinct_2_share, 100 * after.distinct_2_share, 1),
        ("repeated runs of four, %", 100 * before.repeated_share, 100 * after.repeated_share, 1),
        ("tokens", before.n_tokens, after.n_tokens, 0),
    ):
        table.add_row(name, f"{first:.{digits}f}", f"{second:.{digits}f}",
                      f"{second - first:+.{digits}f}")  # fmt: skip
    return table


def _prompt(found: Explanation) -> str:
    request = found.generation.request
    return request.prompt or " ".join(map(str, request.prompt_ids))


def _share(one: Estimate) -> str:
    return f"{one.value:.1%} [{one.low:.1%}, {one.high:.1%}]"


def _heading(screen: Console, name: str, text: str) -> None:
    screen.print(Text(f"{name}  ", style="bold") + Text(plain(text)))


def _verse(screen: Console, text: str) -> None:
    for line in text.splitlines():
        _line(screen, f"  {line}", "italic")


def _line(screen: Console, text: str, style: str = "") -> None:
    screen.print(Text(plain(text), style=style))


def _notes(screen: Console, notes: Sequence[str]) -> None:
    for said in notes:
        _line(screen, f"note: {said}", "yellow")
