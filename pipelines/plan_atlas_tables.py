"""A plan of Atlas for a person's eyes: what each stage takes, and where every rate comes from."""

from rich.console import Console
from rich.table import Table

from pipelines.atlas_rates import encoder, rates
from pipelines.cost import Range
from pipelines.hardware import device
from pipelines.plan_atlas import AtlasPlan, StageCost
from pipelines.plan_tables import in_bytes, in_number, in_range, in_time, new_table


def show(plan: AtlasPlan, console: Console) -> None:
    """Print it."""
    console.print(
        f"[bold]Atlas of {plan.recipe}[/bold] on {plan.n_chunks:,.0f} chunks: {plan.n_devices} × "
        f"{plan.hardware} and {plan.n_cores:,} cores, encoder {plan.encoder}, tags by "
        f"{plan.language_model}"
    )
    console.print(
        f"{plan.n_tagged_chunks:,.0f} tagged chunks, {in_range(plan.n_unique_tags)} unique tags, "
        f"{plan.n_clusters:,} clusters, {plan.n_concepts:,} concepts"
    )
    console.print(_stages(plan))
    console.print(_rates())
    for line in _assumptions(plan):
        console.print(f"- {line}", style="dim", highlight=False)


def _stages(plan: AtlasPlan) -> Table:
    table = new_table(
        "stage", "on", "tokens asked", "tokens answered", "device hours", "core hours",
        "wall time", plan.currency, "stored",
    )  # fmt: skip
    for stage in plan.stages:
        table.add_row(*_row(stage))
    table.add_row(
        "total", "", "", "", "", "", in_time(plan.wall_hours), in_range(plan.money),
        _stored(plan.storage_bytes), style="bold",
    )  # fmt: skip
    return table


def _row(stage: StageCost) -> tuple[str, ...]:
    counted = (
        f"{ends.low:.3g} – {ends.high:.3g}" if ends.high else ""
        for ends in (stage.prompt_tokens, stage.answer_tokens)
    )
    hours = (in_range(ends) if ends.high else "" for ends in (stage.device_hours, stage.core_hours))
    return (
        stage.name, f"{in_number(stage.n)} {stage.unit}", *counted, *hours,
        in_time(stage.wall_hours), in_range(stage.money), _stored(stage.storage_bytes),
    )  # fmt: skip


def _stored(ends: Range) -> str:
    return f"{in_bytes(ends.low)} – {in_bytes(ends.high)}"


def _rates() -> Table:
    table = new_table("rate", "low", "high", "unit", "where it comes from")
    for name, value in rates():
        table.add_row(name, f"{value.low:.3g}", f"{value.high:.3g}", value.unit, value.source)
    return table


def _assumptions(plan: AtlasPlan) -> tuple[str, ...]:
    on = device(plan.hardware)
    return (
        f"encoder {plan.encoder}: {encoder(plan.encoder).source}",
        f"price: {on.price_per_hour:g} {on.currency} a device and hour, the cores beside it "
        f"included. {on.price_source} (pipelines/hardware.json)",
        "stages one after the other; learning the annotator and writing files are not counted",
        "rates are in pipelines/atlas_rates.json: put in your own",
    )
