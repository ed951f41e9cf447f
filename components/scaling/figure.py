"""The picture of a fit: slices with their parabolas, and losses against compute."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from components.scaling.families import FamilyFit
from components.scaling.points import table

COLOURS = ("#0b6e99", "#d9730d", "#448361", "#9065b0")
MARKERS = ("o", "s", "^", "D")


def draw(families: Mapping[str, FamilyFit], path: Path) -> None:
    """One row: nats over size by budget, then nats over compute with the joint law."""
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    by_size, by_compute = figure.subplots(1, 2)
    for index, fit in enumerate(families.values()):
        _slices(by_size, fit, index)
        _compute(by_compute, fit, index)
    by_size.set_xlabel("parameters N (backbone, with concept heads where present)")
    by_compute.set_xlabel("training FLOPs")
    for axes, title in (
        (by_size, "IsoFLOP slices; ✕ marks a minimum inside the sizes tried"),
        (by_compute, "Best loss by compute; dashed: the joint law, with extrapolation"),
    ):
        axes.set_title(title, fontsize=10)
        axes.set_ylabel("held-out nats per token")
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(visible=True, which="both", alpha=0.25)
        axes.legend(fontsize=7)
    figure.savefig(path, dpi=130, metadata={"Software": None})


def _slices(axes: Axes, fit: FamilyFit, index: int) -> None:
    columns = table(fit.points)
    budgets = sorted(set(columns.budget_flops_N.tolist()))
    for rung, (budget, found) in enumerate(zip(budgets, fit.slices, strict=True)):
        inside_N = columns.budget_flops_N == budget
        sizes_N, losses_N = columns.n_parameters_N[inside_N], columns.loss_nats_N[inside_N]
        colour = (COLOURS[index % 4], 0.35 + 0.65 * (rung + 1) / len(budgets))
        axes.scatter(
            sizes_N,
            losses_N,
            marker=MARKERS[rung % 4],
            color=colour,
            label=f"{fit.family}, {budget:.1e} FLOPs",
        )
        if not found.parabola.problem:
            line_N = np.geomspace(sizes_N.min(), sizes_N.max(), 60)
            axes.plot(line_N, found.parabola.predict(line_N), linewidth=1, color=colour)
            vertex = (found.parabola.optimal_parameters, found.parabola.optimal_loss_nats)
            axes.scatter(*vertex, marker="x", s=60, color=colour)


def _compute(axes: Axes, fit: FamilyFit, index: int) -> None:
    columns = table(fit.points)
    colour = COLOURS[index % 4]
    axes.scatter(columns.flops_N, columns.loss_nats_N, color=colour, s=18, label=fit.family)
    if not fit.predictions:
        return
    flops = [found.budget_flops for found in fit.predictions]
    losses = [found.loss_nats.value for found in fit.predictions]
    axes.plot(flops, losses, color=colour, linestyle="--", marker="D", markersize=4)
    for at, found in zip(flops, fit.predictions, strict=True):
        if found.loss_nats.low is not None and found.loss_nats.high is not None:
            axes.vlines(at, found.loss_nats.low, found.loss_nats.high, color=colour, linewidth=2)
