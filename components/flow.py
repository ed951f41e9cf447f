"""What became of a number of things, as bands: some leave on the way, the rest arrive.

Widths are in proportion, so that what was lost is seen beside what was kept. The first loss lies
lowest, so that no band crosses another.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from components.drawing import cut, px, svg
from components.numerals import number
from components.pages import Markup
from components.shades import N_COLOURS

_TRUNK = 130.0
"""Pixels of the whole, at its widest."""

_LEFT, _TOP, _LABELS = 4.0, 26.0, 440.0
_CHARACTER = 7.3
"""Pixels of an average character at 13 pixels of height."""

_LEAST_ROW, _GAP, _THINNEST = 18.0, 8.0, 1.5


@dataclass(frozen=True)
class Loss:
    """So many that left, and why."""

    why: str
    n: int


def flow(whole: str, n: int, losses: Sequence[Loss], rest: str, width: int = 960) -> Markup:
    """`n` of `whole` from left to right; each loss bends away in its order, `rest` goes on.

    Raises ValueError where more is lost than there was.
    """
    n_left = n - sum(loss.n for loss in losses)
    if n < 1 or n_left < 0:
        raise ValueError(f"{[loss.n for loss in losses]} of {n} {whole} cannot be lost")
    scale, end = _TRUNK / n, width - _LABELS
    step = (end - _LEFT) / (len(losses) + 1)
    # From the top: what is left, then the last loss, and the first loss lowest.
    bands = [(rest, n_left, 0, end)] + [
        (loss.why, loss.n, 1 + i, _LEFT + (i + 0.35) * step)
        for i, loss in reversed(list(enumerate(losses)))
    ]
    parts, start, row = [], _TOP, _TOP
    for name, count, colour, bend in bands:
        thick = max(_THINNEST, count * scale)
        parts.append(_band(start, row, thick, bend, min(end, bend + step), end, colour))
        parts.append(_label(end + 10, row + max(thick, _LEAST_ROW) / 2 + 4, count, name, colour))
        start += count * scale
        row += max(thick, _LEAST_ROW) + _GAP
    head = Markup('<text x="{}" y="16" font-size="13" class="strong">{} {}</text>').format(
        px(_LEFT), number(n), whole
    )
    return svg(width, int(row), f"From {whole} to {rest}", [head, *parts])


def _band(
    start: float, row: float, thick: float, bend: float, straight: float, end: float, colour: int
) -> Markup:
    """Along the trunk at `start`, from `bend` to `straight` over to `row`, and on to `end`."""
    middle = (bend + straight) / 2
    upper = (
        f"M{px(_LEFT)} {px(start)}H{px(bend)}"
        f"C{px(middle)} {px(start)} {px(middle)} {px(row)} {px(straight)} {px(row)}H{px(end)}"
    )
    lower = (
        f"V{px(row + thick)}H{px(straight)}C{px(middle)} {px(row + thick)} {px(middle)} "
        f"{px(start + thick)} {px(bend)} {px(start + thick)}H{px(_LEFT)}Z"
    )
    return Markup('<path d="{}" style="fill:var(--c{});opacity:{}"/>').format(
        upper + lower, colour % N_COLOURS, 0.85 if colour == 0 else 0.6
    )


def _label(x: float, y: float, count: int, name: str, colour: int) -> Markup:
    kind = "strong" if colour == 0 else ""
    text = cut(f"{number(count)} {name}", (_LABELS - 14) / _CHARACTER)
    return Markup('<text x="{}" y="{}" font-size="13" class="{}">{}</text>').format(
        px(x), px(y), kind, text
    )
