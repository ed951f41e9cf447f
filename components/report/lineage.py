"""Where everything on the page comes from: each artifact by its digest."""

from collections.abc import Mapping

from components.manifests import Manifest
from components.pages import Cell, Column, Section, code, table


def section(inputs: Mapping[str, Manifest]) -> Section:
    """One row an artifact that was read."""
    rows: list[list[Cell]] = [
        [
            name, code(f"{found.contract}@{found.version}"), code(found.digest[:16]),
            found.rows or None, sum(file.bytes for file in found.files.values()) / 1e6,
        ]
        for name, found in inputs.items()
    ]  # fmt: skip
    columns = [
        Column("artifact"), Column("contract"), Column("digest", "first 16 of 64"), Column("rows"),
        Column("size", "MB"),
    ]  # fmt: skip
    return Section(
        "lineage", "Lineage",
        "This page was made from exactly these bytes, and the same bytes make the same page. The "
        "run's record names the stage, the config and the inputs behind each of them.",
        table(columns, rows),
    )  # fmt: skip
