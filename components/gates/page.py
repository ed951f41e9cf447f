"""The gate report as a page: the verdict, every rule with what was found, the rows to look at."""

from collections.abc import Sequence

from components.gates.profile import ColumnProfile
from components.gates.validation import Finding, Row
from components.manifests import Manifest
from components.pages import (
    Cell,
    Column,
    Fact,
    Markup,
    Section,
    badge,
    cards,
    code,
    folded,
    joined,
    page,
    table,
)


def report_page(
    manifest: Manifest, findings: Sequence[Finding], profiles: Sequence[ColumnProfile]
) -> str:
    """One self-contained page for one check."""
    failed = [finding for finding in findings if not finding.passed]
    verdict = f"{len(failed)} of {len(findings)} rules broken" if failed else "every rule holds"
    sections = [_rules(findings), _columns(profiles)]
    if failed:
        sections.insert(0, _failures(failed))
    return page(
        f"{manifest.contract}: {verdict}",
        f"Gate of {manifest.contract}@{manifest.version}, digest {manifest.digest[:16]}…",
        sections,
        cards(
            [
                Fact("verdict", "stopped" if failed else "passed"),
                Fact("rows checked", manifest.rows),
                Fact("rules", len(findings)),
                Fact("rules broken", len(failed)),
            ]
        ),
    )


def _failures(failed: Sequence[Finding]) -> Section:
    body = joined(
        folded(
            f"{finding.rule}, on {finding.column}: {finding.observed}, not {finding.expected}",
            _rows(finding.rows),
        )
        for finding in failed
    )
    lead = "What must be put right, with the first rows to look at. The next stage does not start."
    return Section("failures", "Broken rules", lead, body)


def _rows(rows: Sequence[Row]) -> Markup:
    if not rows:
        return Markup("<p>This rule is about the whole, not about single rows.</p>")
    names = list(rows[0])
    cells: list[list[Cell]] = [[row[name] for name in names] for row in rows]
    return table([Column(name) for name in names], cells)


def _rules(findings: Sequence[Finding]) -> Section:
    rows: list[list[Cell]] = [
        [
            badge("holds", "good") if finding.passed else badge("broken", "bad"),
            code(finding.rule),
            finding.column,
            finding.expected,
            finding.observed,
        ]
        for finding in findings
    ]
    names = ("", "rule", "column", "expected", "found")
    lead = "Each rule was evaluated on at least one value; one that could not be is broken."
    return Section("rules", "Rules", lead, table([Column(name) for name in names], rows))


def _columns(profiles: Sequence[ColumnProfile]) -> Section:
    rows: list[list[Cell]] = [
        [p.sheet, code(p.column), p.n_values, p.n_missing, p.n_distinct, p.values] for p in profiles
    ]
    columns = [
        Column("table"), Column("column"), Column("values"), Column("missing"),
        Column("distinct"), Column("least … median … most, or the commonest"),
    ]  # fmt: skip
    lead = "The columns of the artifact and those computed from them for the rules."
    return Section("columns", "Columns", lead, table(columns, rows))
