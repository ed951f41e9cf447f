"""The gate: whether an artifact obeys its contract, before anything is spent on it.

The suite follows from the artifact's own manifest. The result is data: a check that finds fault
still returns, with a report that says so, and the runner stops the run after keeping that report.
"""

import json
import math
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from components import contracts, parts
from components.contracts import ContractError
from components.gates.config import CheckConfig
from components.gates.page import report_page
from components.gates.profile import profile
from components.gates.rules import Sheet
from components.gates.suites import (
    chunks,
    concepts,
    documents,
    labels,
    lifted,
    messages,
    shape,
    tags,
    tokens,
)
from components.gates.validation import Finding, validate
from components.manifests import Manifest


def check(artifact: Path, report: Path, config: CheckConfig) -> int:
    """Check `artifact` against the suite of its contract. Returns the number of broken rules."""
    contract = contracts.ALL.get(contracts.manifest_of(artifact).contract)
    if contract is None or contract.name not in CONTRACTS_WITH_A_SUITE:
        raise ContractError(
            f"{artifact} is {contract or 'of no known contract'}, for which there is no gate; "
            f"gates exist for {', '.join(CONTRACTS_WITH_A_SUITE)}."
        )
    manifest = contracts.verify(artifact, contract)
    table = parts.read(parts.paths(artifact, manifest.files))
    checked = shape.sheets(table, contract.schema)
    findings = validate(checked, config.n_bad_rows)
    if all(finding.passed for finding in findings):
        content = sheets_of(contract.name, table, artifact, config)
        findings += validate(content, config.n_bad_rows)
        checked = content
    _write(report, manifest, findings, report_page(manifest, findings, profile(checked)))
    return sum(not finding.passed for finding in findings)


CONTRACTS_WITH_A_SUITE = (
    "Documents", "Chunks", "Tags", "Concepts", "Labels", "LiftedWords", "Tokens", "Messages",
)  # fmt: skip


def sheets_of(name: str, table: pa.Table, folder: Path, config: CheckConfig) -> list[Sheet]:
    """The suite of a contract, on a table whose columns and types are known to be right."""
    match name:
        case "Documents":
            return documents.sheets(table, config.documents)
        case "Chunks":
            return chunks.sheets(table, config.chunks)
        case "Tags":
            sample = contracts.json_file(folder, "sample.json")
            keys = ("tagged", "parse_failed", "tagged_by_phrases")
            return tags.sheets(table, tags.Sampled(*(_ids(sample, key) for key in keys)),
                               config.tags)  # fmt: skip
        case "Concepts":
            declared = contracts.json_file(folder, "library.json").get("n_concepts")
            return concepts.sheets(
                table, declared if isinstance(declared, int) else math.nan, config.concepts
            )
        case "Labels":
            return labels.sheets(table, config.labels)
        case "LiftedWords":
            return lifted.sheets(table, config.lifted)
        case "Messages":
            return messages.sheets(table, config.messages)
        case _:
            return tokens.sheets(table, tokens.stream_of(folder), config.tokens)


def _ids(sample: dict[str, object], key: str) -> list[int]:
    """Chunk ids under a key; none where it is missing, which the rules on amounts then notice."""
    ids = sample.get(key)
    return [int(chunk_id) for chunk_id in ids] if isinstance(ids, list) else []


def _write(report: Path, manifest: Manifest, findings: list[Finding], html: str) -> None:
    failures = [
        {
            "rule": finding.rule,
            "column": finding.column,
            "expected": finding.expected,
            "observed": finding.observed,
            "n_bad_rows": finding.n_bad_rows,
            "rows": list(asdict(finding)["rows"]),
        }
        for finding in findings
        if not finding.passed
    ]
    body = {
        "contract": f"{manifest.contract}@{manifest.version}",
        "digest": manifest.digest,
        "passed": not failures,
        "failures": failures,
        "checked": {finding.rule: finding.observed for finding in findings},
    }
    (report / "report.json").write_text(json.dumps(body, indent=1, allow_nan=False))
    (report / "report.html").write_text(html)
    contracts.seal(report, contracts.GATE_REPORT)
