"""A figure of a study, and all of them together."""

from model.config import Config
from model.intervals import Interval


class Figure(Config):
    """One number of the analysis with its 95% interval, and how much it rests on."""

    value: float
    low: float
    high: float
    n: int
    n_of: str
    """What is counted: ratings, pairs, concepts, simulated studies."""

    unit: str
    note: str = ""


class Analysis(Config):
    """What `analysis.json` holds."""

    study_ids: tuple[str, ...]
    """Of phase 1, and of phase 2 where there is one."""

    library_digest: str
    collected: dict[str, dict[str, object]]
    """By phase: raters and items asked, answered and missing."""

    coherence: dict[str, Figure]
    fit: dict[str, Figure]
    models: dict[str, Figure]
    by_coherence: dict[str, Figure]
    power: dict[str, Figure]
    left_out: tuple[str, ...]
    """Figures that the answers do not allow, with the reason."""


def figure(found: Interval, n: int, n_of: str, unit: str, note: str = "") -> Figure:
    """An interval as a figure."""
    return Figure(
        value=found.value, low=found.low, high=found.high, n=n, n_of=n_of, unit=unit, note=note
    )
