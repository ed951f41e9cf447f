"""How strongly to steer each concept of a checkpoint: what the steering stage found (paper §6.2).

A concept has a strength of its own where some strength made its texts better than leaving them
alone: the one with the greatest harmonic mean of effect and quality. All others, groups and unknown
concepts share the common strength, which had the greatest mean over the concepts that were tried.
Either says which it is, and on how many texts it rests.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from components import contracts
from model.config import Config
from model.directions import ConceptRef
from model.steering import Action, Change
from model.steering_config import InjectionConfig

FACTS_FILE = "calibration.json"
Tried = Literal["amplify", "suppress"]


class Strength(Config):
    """τ with its evidence. `low` and `high` bound the harmonic mean's 95% interval."""

    logits: float
    source: Literal["own", "common"]
    harmonic_mean: float
    low: float
    high: float
    n: int
    """Texts; for a common strength, of all concepts."""


class Facts(Config):
    """What holds for all concepts."""

    checkpoint_digest: str
    n_layers: int
    amplify: InjectionConfig
    suppress: InjectionConfig
    common: dict[Tried, Strength]


@dataclass(frozen=True)
class Calibration:
    """Strengths of one checkpoint's concepts."""

    facts: Facts
    own: Mapping[tuple[ConceptRef, Tried], Strength]

    def strength(self, concepts: Sequence[ConceptRef], action: Action) -> Strength:
        """The strength of a concept, or the common one for a group or one without evidence.

        For a replacement, ask with the concepts that are put in.
        """
        tried: Tried = "suppress" if action == "suppress" else "amplify"
        common = self.facts.common[tried]
        return self.own.get((concepts[0], tried), common) if len(concepts) == 1 else common

    def change(
        self, concepts: Sequence[ConceptRef], action: Action, *,
        strength: float | None = None, instead: Sequence[ConceptRef] = (),
    ) -> Change:  # fmt: skip
        """The change as it was evaluated, of this strength. None: the calibrated one."""
        where = self.facts.suppress if action == "suppress" else self.facts.amplify
        if strength is None:
            strength = self.strength(instead or concepts, action).logits
        return Change(
            tuple(concepts), strength, action, tuple(instead),
            layers=where.at(self.facts.n_layers), positions=where.positions,
            first_tokens=where.first_tokens,
        )  # fmt: skip


def load(folder: Path, checkpoint_digest: str) -> Calibration:
    """The calibration of a verified artifact. ContractError if it is another checkpoint's."""
    rows = contracts.read(folder, contracts.CALIBRATION).to_pylist()
    facts = Facts.model_validate(contracts.json_file(folder, FACTS_FILE))
    if facts.checkpoint_digest != checkpoint_digest:
        raise contracts.ContractError(
            f"{folder} has strengths for the checkpoint {facts.checkpoint_digest[:12]}…, but this "
            f"one is {checkpoint_digest[:12]}…: its directions are others. "
            f"{contracts.again(contracts.CALIBRATION)}"
        )
    own: dict[tuple[ConceptRef, Tried], Strength] = {}
    for row in rows:
        for tried in _TRIED:
            found = strength_of(row, tried)
            if found.source == "own":
                own[ConceptRef(row["kind"], row["concept_id"]), tried] = found
    return Calibration(facts, own)


_TRIED: tuple[Tried, ...] = ("amplify", "suppress")


def strength_of(row: Mapping[str, object], tried: Tried) -> Strength:
    """One of the two strengths in a row of Calibration@1."""
    fields = ("source", "harmonic_mean", "low", "high", "n")
    values = {field: row[f"{field}_{tried}"] for field in fields}
    return Strength.model_validate({"logits": row[f"strength_{tried}"], **values})


def columns_of(strength: Strength, tried: Tried) -> dict[str, object]:
    """A strength as columns of Calibration@1."""
    named = {f"{field}_{tried}": value for field, value in strength.model_dump().items()}
    named[f"strength_{tried}"] = named.pop(f"logits_{tried}")
    return named
