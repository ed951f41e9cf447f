"""What every picture of a page is made of: the SVG frame, pixels, and text that fits its room."""

from collections.abc import Iterable

from components.pages import Markup, joined
from components.shades import N_COLOURS

CHARACTER = 6.6
"""Pixels of an average character at 12 pixels of height."""

_SHAPES = (
    "M{x} {y}m-{r} 0a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0Z",  # circle
    "M{x} {y}m-{r} -{r}h{d}v{d}h-{d}Z",  # square
    "M{x} {y}m0 -{r}l{r} {r}l-{r} {r}l-{r} -{r}Z",  # diamond
)


def svg(width: int, height: int, title: str, parts: Iterable[Markup]) -> Markup:
    """A picture that is as wide as its column, up to `width`, and says what it is."""
    return Markup(
        '<svg viewBox="0 0 {} {}" style="max-width:{}px" role="img" aria-label="{}">'
        "<title>{}</title>{}</svg>"
    ).format(width, height, width, title, title, joined(parts))


def px(value: float) -> str:
    """A tenth of a pixel is exact enough, and keeps pages small and the same everywhere."""
    return f"{value:.1f}"


def cut(text: str, characters: float) -> str:
    """Text of at most so many characters, with a mark where it was cut."""
    return text if len(text) <= characters else text[: max(1, int(characters) - 1)] + "…"


def mark(group: int, x: float, y: float, radius: float) -> Markup:
    """The sign of a group: colours repeat after six, then with another shape."""
    shape = _SHAPES[group // N_COLOURS % len(_SHAPES)]
    path = shape.format(x=px(x), y=px(y), r=px(radius), d=px(2 * radius))
    return Markup('<path d="{}" style="fill:var(--c{})"/>').format(path, group % N_COLOURS)


def legend(groups: Iterable[tuple[int, str]]) -> Markup:
    """The sign of each group beside its name."""
    return Markup('<p class="legend">{}</p>').format(
        joined(
            Markup(
                '<span><svg width="12" height="12" viewBox="0 0 12 12">{}</svg>{}</span>'
            ).format(mark(group, 6, 6, 5), name)
            for group, name in groups
        )
    )
