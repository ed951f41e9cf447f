"""The numbers of the large recipes and where each comes from, as Markdown.

python docs/recipes_table.py      rewrites the tables in docs/recipes.md
"""

import sys
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pipelines import recipes, sources
from pipelines.hardware import devices
from pipelines.ladder import SIZES
from pipelines.plan import plan
from pipelines.provenance import Leaf, provenance

PAGE = Path(__file__).with_name("recipes.md")
BEGIN, END = "<!-- recipes: begin -->", "<!-- recipes: end -->"
LARGE = ("small", "one_b", "steerling_8b")


def tables() -> str:
    """Every table of the page, each under its heading."""
    parts = [_totals(), _datasets(), _mixtures(), _sizes(), _hardware(), _provenance()]
    return "\n\n".join(parts)


def with_tables(page: str) -> str:
    """The page with its tables replaced by the present ones."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{tables()}\n{END}{tail}"


def _totals() -> str:
    rows = []
    for name in LARGE:
        counted = plan(recipes.named(name))
        train = counted.stages[0]
        trained = [stage.cost.flops for stage in counted.stages]
        hours = [stage.cost.device_hours for stage in counted.stages]
        low, high = sum(each.low for each in hours), sum(each.high for each in hours)
        rows.append(
            f"| `{name}` | {train.n_parameters:,} | {sum(s.n_tokens for s in counted.stages):.4g} "
            f"| {sum(trained):.4g} | {counted.n_devices} × {counted.hardware} "
            f"| {low:,.0f} – {high:,.0f} | {counted.ladder.cost.flops:.3g} |"
        )
    return _table(
        "What they take",
        ("recipe", "parameters", "tokens", "FLOPs", "meant for", "device hours", "ladder's FLOPs"),
        rows,
    )


def _datasets() -> str:
    rows = [
        f"| `{domain}` | {data.paper_name} | `{data.name}` | `{data.subset}` | "
        f"{data.available_tokens:.3g} | {data.licence}{', gated' if data.is_gated else ''} | "
        f"{sources.PRETRAINING.get(domain, 0):.1%} | {data.note} |"
        for domain, data in sources.DATASETS.items()
    ]
    columns = (
        "domain", "in the paper", "data set", "subset", "tokens there", "licence", "pretraining",
        "note",
    )  # fmt: skip
    return _table("Data sets", columns, rows)


def _mixtures() -> str:
    domains = list(sources.DATASETS)
    found = {f"`{name}`": shares for name, shares in sources.MIDTRAINING.items()} | {
        f"`code_augmented`, Nemotron {kind}": sources.midtraining("code_augmented", kind)
        for kind in sources.NEMOTRON
        if kind != "real"
    }
    rows = [
        f"| {name} | {' | '.join(f'{shares.get(domain, 0):.0%}' for domain in domains)} |"
        for name, shares in found.items()
    ]
    return _table("Mid-training mixtures", ("mixture", *domains), rows)


def _sizes() -> str:
    rows = [
        f"| {size.width} × {size.n_layers} | {size.n_heads} ({size.n_kv_heads}) | "
        f"{f'{size.n_known:,}' if size.n_known else 'all'} | {size.rank} |"
        for size in SIZES
    ]
    return _table("The ladder", ("width × layers", "heads (key-value)", "concepts", "rank"), rows)


def _hardware() -> str:
    rows = [
        f"| `{name}` | {each.summary} | {each.peak_flops:.4g} | {each.peak_source} | "
        f"{each.utilisation_low:.0%} – {each.utilisation_high:.0%} | {each.utilisation_source} | "
        f"{each.price_per_hour:g} {each.currency} | {each.price_source} |"
        for name, each in devices().items()
    ]
    columns = (
        "device", "what it is", "peak FLOP/s", "source", "utilisation", "source", "an hour",
        "source",
    )  # fmt: skip
    return _table("Devices", columns, rows)


def _provenance() -> str:
    """The paper's recipe whole, the others where they differ from it."""
    paper = provenance(recipes.named("steerling_8b"))
    known = {leaf.key: leaf.value for leaf in paper}
    parts = [_section("Where the numbers of `steerling_8b` come from", paper)]
    for name in ("one_b", "small"):
        other = [
            leaf
            for leaf in provenance(recipes.named(name))
            if leaf.key not in known or known[leaf.key] != leaf.value
        ]
        parts.append(_section(f"Where `{name}` differs", other))
    return "\n\n".join(parts)


def _section(heading: str, found: list[Leaf]) -> str:
    """One row for all numbers of a part that share a source, where they stand together."""
    rows = []
    for (prefix, source), group in groupby(found, key=_place):
        values = ", ".join(f"{leaf.key.rpartition('.')[2]} {_value(leaf.value)}" for leaf in group)
        rows.append(f"| `{prefix}` | {values} | {source} |")
    return _table(heading, ("part", "numbers", "source"), rows)


def _place(leaf: Leaf) -> tuple[str, str]:
    return leaf.key.rpartition(".")[0] or "recipe", leaf.source


def _value(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]" if len(value) < 6 else f"({len(value)} of them)"
    return f"{value:g}" if isinstance(value, float) else str(value) or "none"


def _table(heading: str, columns: tuple[str, ...], rows: list[str]) -> str:
    lines = [f"## {heading}", "", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    return "\n".join([*lines, *rows])


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
