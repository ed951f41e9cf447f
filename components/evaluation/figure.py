"""The picture of an evaluation: text by domain, concepts by AUROC, and what parts carry."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from components.scores import Score

BLUE, ORANGE, GREY = "#0b6e99", "#d9730d", "#8a8a86"


def draw(
    scores: Mapping[str, Score], auroc_L: NDArray[np.float64], suffix: str, path: Path
) -> None:
    """Three panels; the last two need concepts."""
    figure = Figure(figsize=(13, 4), layout="constrained")
    FigureCanvasAgg(figure)
    by_domain, by_concept, by_part = figure.subplots(1, 3)
    _domains(by_domain, scores)
    _losses(by_part, scores, suffix)
    _areas(by_concept, auroc_L)
    figure.savefig(path, dpi=130, metadata={"Software": None})


def _domains(axes: Axes, scores: Mapping[str, Score]) -> None:
    named = {
        name.removeprefix("bits_per_byte_"): score
        for name, score in scores.items()
        if name.startswith("bits_per_byte_")
    }
    _bars(axes, named, [BLUE] * len(named))
    axes.set_title("Bits per byte of held-out text, by domain", fontsize=10)


def _losses(axes: Axes, scores: Mapping[str, Score], suffix: str) -> None:
    shown = {
        "unigram": f"unigram_nats_per_token{suffix}",
        "network": f"nll_nats_per_token{suffix}",
        "residual zero": f"nll_nats_per_token{suffix}_residual_zero",
        "concepts forced": f"nll_nats_per_token{suffix}_concepts_forced",
    }
    found = {label: scores[name] for label, name in shown.items() if name in scores}
    _bars(axes, found, [GREY, BLUE, ORANGE, ORANGE][: len(found)])
    axes.set_title("Nats per token, the same tokens", fontsize=10)


def _areas(axes: Axes, auroc_L: NDArray[np.float64]) -> None:
    axes.set_title(f"AUROC of {len(auroc_L)} concepts on held-out chunks", fontsize=10)
    if not len(auroc_L):
        axes.text(0.5, 0.5, "no concepts in this network", ha="center", transform=axes.transAxes)
        return
    low = min(0.4, float(auroc_L.min()))
    axes.hist(auroc_L, bins=np.linspace(low, 1, 25).tolist(), color=BLUE)
    mean = float(auroc_L.mean())
    axes.axvline(mean, color=ORANGE, label=f"macro {mean:.3f}")
    axes.axvline(0.5, color=GREY, linestyle="--", label="chance")
    axes.set_ylabel("concepts")
    axes.legend(fontsize=8)


def _bars(axes: Axes, scores: Mapping[str, Score], colours: list[str]) -> None:
    values = np.array([score.value for score in scores.values()])
    around = np.array([[s.value - s.low, s.high - s.value] for s in scores.values()])
    axes.bar(list(scores), values, yerr=around.T.clip(min=0), color=colours, capsize=3)
    axes.tick_params(axis="x", rotation=30)
    for place, value in enumerate(values.tolist()):
        axes.text(place, 0.0, f"{value:.2f}", ha="center", va="bottom", color="white", fontsize=9)
