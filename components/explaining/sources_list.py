"""Training chunks as a reader can check them: what, from where, under which licence, how alike."""

from collections.abc import Sequence

from components.explaining.schema import IndexAccount, TrainingSource
from components.numerals import number
from components.pages import Markup, joined

_TEXT_CHARS = 700


def sources_list(sources: Sequence[TrainingSource], index: IndexAccount | None) -> Markup:
    """The nearest first; a sentence where there are none."""
    if index is None:
        return Markup('<p class="lead">No index was opened, so no training text is shown.</p>')
    if not sources:
        return Markup('<p class="lead">Nothing is shown: this chunk has no text of its own.</p>')
    return Markup('<ol class="near">{}</ol><p class="lead">{}</p>').format(
        joined(_source(one) for one in sources),
        f"Nearest of {number(index.n_chunks)} chunks. {index.claims[:1].upper()}"
        f"{index.claims[1:]}.",
    )


def _source(one: TrainingSource) -> Markup:
    return Markup(
        '<li><h4>{rank}. {title}</h4><p><span class="fill"><i style="width:{width}%"></i></span>'
        "cosine {cosine}, above {above} % of random pairs</p><blockquote>{text}</blockquote>"
        "<p>{source} · {licence} · {domain} · <code>{doc}</code>, characters {start}–{end}{places}"
        "</p></li>"
    ).format(
        rank=one.rank, title=one.title, width=round(100 * min(1.0, max(0.0, one.cosine)), 1),
        cosine=f"{one.cosine:.2f}", above=number(round(100 * one.random_below_share, 1)),
        text=one.text if len(one.text) <= _TEXT_CHARS else f"{one.text[:_TEXT_CHARS]}…",
        source=one.source, licence=one.licence, domain=one.domain, doc=one.doc_id,
        start=one.start_char, end=one.end_char,
        places="" if one.n_places == 1 else f", and in {one.n_places - 1} more places",
    )  # fmt: skip
