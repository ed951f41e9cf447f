"""The known concepts a checkpoint carries: ids, names and how common they are."""

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class KnownConcept:
    """One concept of the library a network was trained with."""

    concept_id: int
    name: str
    description: str
    prevalence: float


def known_concepts(checkpoint: Path) -> list[KnownConcept]:
    """Concepts by id, 0 … n − 1, as the checkpoint stores them."""
    listed = json.loads((checkpoint / "concepts.json").read_text())["concepts"]
    return [
        KnownConcept(row["concept_id"], row["name"], row["description"], row["prevalence"])
        for row in listed
    ]
