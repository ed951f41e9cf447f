"""A plan for a person's eyes: what is trained, what it takes, what a rank holds."""

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from pipelines.cost import Cost, Range
from pipelines.plan import MemoryPlan, Plan

_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def show(plan: Plan, console: Console) -> None:
    """Print it."""
    console.print(
        f"[bold]{plan.recipe}[/bold] on {plan.n_devices} × {plan.hardware} "
        f"({plan.device.summary}), {plan.ranks} rank(s)"
    )
    for table in (_parameters(plan), _costs(plan), _memory(plan)):
        console.print(table)
    for line in _assumptions(plan):
        console.print(f"- {line}", style="dim", highlight=False)


def _parameters(plan: Plan) -> Table:
    counted = plan.stages[0].parameters
    table = new_table("parameters", "embedding", "head", "backbone", "known", "unknown", "total")
    table.add_row(
        f"{plan.expected_concepts:,} concepts", f"{counted.embedding:,}",
        f"{counted.head:,}" if counted.head else "tied", f"{counted.backbone:,}",
        f"{counted.known:,}", f"{counted.unknown:,}", f"{counted.total:,}",
    )  # fmt: skip
    return table


def _costs(plan: Plan) -> Table:
    table = new_table(
        "stage", "tokens", "steps", "FLOPs", "computed", "device hours", "wall time",
        plan.device.currency, "checkpoint",
    )  # fmt: skip
    for stage in plan.stages:
        table.add_row(
            stage.name, f"{stage.n_tokens:.4g}", f"{stage.n_steps:,}", f"{stage.cost.flops:.4g}",
            f"{stage.computed_flops:.4g}", *_money(stage.cost),
            f"{in_bytes(stage.checkpoint_bytes)} ({in_bytes(stage.resumable_checkpoint_bytes)})",
        )  # fmt: skip
    ladder = plan.ladder
    table.add_row(
        f"ladder, {ladder.n_points} runs", "", "", f"{ladder.cost.flops:.4g}", "",
        *_money(ladder.cost), "",
    )  # fmt: skip
    table.add_row(
        "total", "", "", f"{plan.total.flops:.4g}", "", *_money(plan.total), "", style="bold"
    )
    return table


def _money(cost: Cost) -> tuple[str, str, str]:
    return in_range(cost.device_hours), in_time(cost.wall_hours), in_range(cost.money)


def _memory(plan: Plan) -> Table:
    table = new_table(
        "a rank's memory", "weights", "gradients", "optimiser", "activations", "concepts", "head",
        "buffers", "total", "checkpointed", "verdict",
    )  # fmt: skip
    for stage in plan.stages:
        for row in stage.memory:
            table.add_row(*_row(stage.name, row), style="bold" if row.is_chosen else "")
    return table


def _row(stage: str, row: MemoryPlan) -> tuple[str, ...]:
    held = row.memory
    parts = (
        held.weights, held.gradients, held.optimiser, held.activations, held.concepts, held.head,
        held.buffers, row.total_bytes, row.total_bytes_with_checkpointing,
    )  # fmt: skip
    mark = "→ " if row.is_chosen else "  "
    return f"{mark}{stage}, ZeRO {row.zero_stage}", *map(in_bytes, parts), row.verdict


def _assumptions(plan: Plan) -> Iterator[str]:
    device, ladder = plan.device, plan.ladder
    yield (
        f"hours: FLOPs at {device.utilisation_low:.0%} to {device.utilisation_high:.0%} of "
        f"{device.peak_flops:.4g} FLOP/s. {device.utilisation_source}"
    )
    yield (
        f"price: {device.price_per_hour:g} {device.currency} a device and hour. "
        f"{device.price_source} (pipelines/hardware.json)"
    )
    yield (
        f"memory: {in_bytes(device.usable_bytes)} of {in_bytes(device.memory_bytes)} a device are "
        f"usable; formulas in model/memory.py; in brackets a checkpoint that can be resumed"
    )
    fits = "fits" if ladder.largest_point_fits else "does not fit"
    yield (
        f"ladder: one rank a run, side by side; the largest, {ladder.largest_point}, takes "
        f"{in_bytes(ladder.largest_point_bytes)} and {fits}"
    )
    yield (
        "FLOPs: the paper's convention; computed: without what a gradient does not need, twice "
        "what is computed again"
    )
    yield "ZeRO 0 is for float32 alone; what is not training (Atlas, evaluation) is not counted"


def new_table(*columns: str) -> Table:
    """A table whose first column is to the left."""
    table = Table()
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=number == 0)
    return table


def in_bytes(number: float) -> str:
    """1,200,000 as 1.2 MB."""
    for unit, prefix in _UNITS:
        if number >= unit:
            return f"{number / unit:.3g} {prefix}B"
    return f"{number:.0f} B"


def in_range(ends: Range) -> str:
    """Both ends."""
    return f"{in_number(ends.low)} – {in_number(ends.high)}"


def in_number(value: float) -> str:
    """Three digits, or all of a large one."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def in_time(hours: Range) -> str:
    """In the unit that fits the longer end."""
    for unit, name in ((24.0 * 2, "days"), (1.0, "h"), (1 / 60, "min"), (0.0, "s")):
        if hours.high >= unit:
            each = {"days": 24.0, "h": 1.0, "min": 1 / 60, "s": 1 / 3600}[name]
            return f"{in_number(hours.low / each)} – {in_number(hours.high / each)} {name}"
    raise AssertionError("every number of hours is at least zero")
