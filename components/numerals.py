"""Numbers as a reader wants them: few digits, thousands apart, columns that line up."""

import math
from collections.abc import Sequence

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_THIN = "\N{NARROW NO-BREAK SPACE}"
_DIGITS = 4


def number(value: float) -> str:
    """Four significant digits, thousands apart, powers of ten where a row of zeros would do."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not math.isfinite(value):
        return "not finite"
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    if exponent >= 9 or exponent < -4:
        return f"{value / 10**exponent:.2f} × 10{str(exponent).translate(_SUPERSCRIPTS)}"
    if float(value).is_integer():
        return _signed(f"{value:,.0f}")
    fixed = f"{value:,.{max(0, _DIGITS - 1 - exponent)}f}"
    return _signed(fixed.rstrip("0").rstrip(".") if "." in fixed else fixed)


def interval(low: float, high: float) -> str:
    """Both ends in brackets."""
    return f"[{number(low)}, {number(high)}]"


def aligned(values: Sequence[float]) -> list[str]:
    """A column with one number of decimals, enough for four digits of the largest.

    Numbers that would lose all but one of their digits, and those beyond the range of plain
    digits, are written as they are by themselves.
    """
    plain = [v for v in values if math.isfinite(v) and 1e-4 <= abs(v) < 1e9]
    if not plain or all(float(v).is_integer() for v in plain):
        return [number(v) for v in values]
    exponent = math.floor(math.log10(max(abs(v) for v in plain)))
    decimals = max(0, _DIGITS - 1 - exponent)
    while decimals and all(round(v, decimals) == round(v, decimals - 1) for v in plain):
        decimals -= 1
    smallest = 10.0 ** (1 - decimals)

    def fits(value: float) -> bool:
        whole = math.isclose(round(value, decimals), value, rel_tol=1e-9)
        return value == 0 or (value in plain and (abs(value) >= smallest or whole))

    return [_signed(f"{v:,.{decimals}f}") if fits(v) else number(v) for v in values]


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from `low` to `high`, about that many."""
    raw = (high - low) / about
    step = 10.0 ** math.floor(math.log10(raw))
    step *= next(factor for factor in (1, 2, 2.5, 5, 10) if factor * step >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def short(value: float) -> str:
    """A round number as the label of an axis."""
    for factor, suffix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return _signed(f"{value / factor:g}{suffix}")
    return _signed(f"{round(value, 10):g}")


def _signed(text: str) -> str:
    """A real minus sign, and thousands set apart by a thin space."""
    return text.replace(",", _THIN).replace("-", "−")
