"""What other stages' JSON files say, as far as the page needs it; what else they hold is ignored.

Every folder is verified before it is read, so a page never tells of files that were changed.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from components import contracts
from components.manifests import Manifest


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Score(_Part):
    """One measured number with its 95% interval."""

    value: float
    n: int
    n_of: str
    low: float
    high: float
    unit: str
    condition: str
    note: str = ""


class Run(_Part):
    """Whose curve it is: `run.json` of a Curve."""

    name: str
    family: str
    seed: int
    n_parameters: float
    n_backbone_parameters: float
    n_tokens: float
    flops: float
    """Wall time, where the run says it: a time would make the same run another artifact."""


@dataclass(frozen=True)
class Curve:
    """A training run: who it was, and its columns by step."""

    run: Run
    columns: Mapping[str, list[float]]
    """NaN where a value was not measured."""


@dataclass(frozen=True)
class Scores:
    """Everything evaluation measured, by name."""

    by_name: Mapping[str, Score]

    def first(self, prefix: str) -> Score:
        """The score of the shortest name with this prefix: names end in how it was measured."""
        names = sorted((n for n in self.by_name if n.startswith(prefix)), key=lambda n: (len(n), n))
        if not names:
            raise contracts.ContractError(
                f"the scores hold no {prefix}…, only {sorted(self.by_name)}. Were they written by "
                f"an older stage? Run `clearstory rerun --from evaluate`."
            )
        return self.by_name[names[0]]

    def has(self, prefix: str) -> bool:
        """Whether there is one: networks without concepts have fewer scores."""
        return any(name.startswith(prefix) for name in self.by_name)


def read_scores(folder: Path) -> Scores:
    """The scores of a verified artifact."""
    contracts.verify(folder, contracts.SCORES)
    said = contracts.json_file(folder, "scores.json")
    return Scores({name: Score.model_validate(score) for name, score in said.items()})


def read_curve(folder: Path) -> Curve:
    """A curve with its run."""
    table = contracts.read(folder, contracts.CURVE)
    nan = float("nan")
    columns = {
        name: [nan if value is None else float(value) for value in table.column(name).to_pylist()]
        for name in table.column_names
    }
    run = Run.model_validate(contracts.json_file(folder, "run.json"))
    return Curve(run, columns)


def read_table(folder: Path, contract: contracts.Contract, *columns: str) -> pa.Table:
    """Some columns of a verified artifact."""
    return contracts.read(folder, contract).select(list(columns))


def read_json(folder: Path, contract: contracts.Contract, name: str) -> str:
    """The text of a verified artifact's JSON file, for a model to validate."""
    contracts.verify(folder, contract)
    return (folder / name).read_text()


def manifest(folder: Path) -> Manifest:
    """The manifest of an input, for the lineage."""
    return contracts.manifest_of(folder)


def as_json(value: object) -> str:
    """Text that is the same for the same content, and that JSON readers accept."""
    return json.dumps(value, indent=1, allow_nan=False, sort_keys=True) + "\n"
