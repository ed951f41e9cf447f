"""Text and numbers as colour: what tokens owe, what concepts weigh, how a whole divides."""

from collections.abc import Iterable, Sequence

from components.numerals import number
from components.pages import Markup, joined

N_COLOURS = 6
"""Custom properties --c0 … of the style sheet."""


def heat(tokens: Iterable[tuple[str, float]]) -> Markup:
    """Tokens shaded by weight: one colour for what speaks for, one for what speaks against."""
    pairs = list(tokens)
    largest = max((abs(weight) for _, weight in pairs), default=0.0)
    return Markup('<p class="heat">{}</p>').format(
        joined(_shaded(token, weight, largest) for token, weight in pairs)
    )


def tinted(tokens: Iterable[tuple[str, int, float, str]]) -> Markup:
    """Tokens in the colour of what stands behind them: text, colour, strength 0 to 1, tooltip.

    Colour −1 is none.
    """
    return Markup('<p class="heat">{}</p>').format(
        joined(
            Markup('<mark style="background:{}" title="{}">{}</mark>').format(
                _tint(colour, strength), said, token
            )
            for token, colour, strength, said in tokens
        )
    )


def swatch(colour: int) -> Markup:
    """The small square that ties a name to a colour of `tinted`."""
    return Markup('<i class="swatch" style="background:{}"></i>').format(_tint(colour, 1.0))


def stacked(shares: Sequence[tuple[str, float]]) -> Markup:
    """Shares of a whole as one bar, each named beneath with its percentage."""
    parts = joined(
        Markup('<i style="width:{}%;background:var(--c{})"></i>').format(
            round(100 * share, 2), i % N_COLOURS
        )
        for i, (_, share) in enumerate(shares)
    )
    names = joined(
        Markup("<span>{}{} {} %</span>").format(swatch(i), name, number(round(100 * share, 1)))
        for i, (name, share) in enumerate(shares)
    )
    return Markup('<span class="stacked">{}</span><span class="legend">{}</span>').format(
        parts, names
    )


def signed_bar(value: float, largest: float) -> Markup:
    """A number as a bar to the right (for) or to the left (against) of a middle line."""
    share = 0.0 if largest == 0 else min(1.0, abs(value) / largest)
    side = "for" if value >= 0 else "against"
    return Markup('<span class="bar {}"><i style="width:{}%"></i></span>').format(
        side, round(50 * share, 2)
    )


def _tint(colour: int, strength: float) -> str:
    if colour < 0:
        return "transparent"
    percent = round(15 + 55 * min(1.0, strength))
    return f"color-mix(in srgb,var(--c{colour % N_COLOURS}) {percent}%,transparent)"


def _shaded(token: str, weight: float, largest: float) -> Markup:
    strength = 0.0 if largest == 0 else abs(weight) / largest
    side = "for" if weight >= 0 else "against"
    return Markup('<mark class="{}" style="--w:{}%" title="{}">{}</mark>').format(
        side, round(70 * strength, 1), number(weight), token
    )
