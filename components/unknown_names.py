"""Names of unknown concepts, for those who show or steer them: reads UnknownNames@1.

A name says what a concept was found to be about on held-out chunks, no more; one that does not hold
there is "unnamed". The prefix tells these names from those of the library.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from components import contracts

DISCOVERED = "Discovered: "
UNNAMED = "unnamed"
FACTS_FILE = "names.json"


@dataclass(frozen=True)
class UnknownName:
    """What was found of one unknown concept."""

    concept_id: int
    name: str
    """Without the prefix; "unnamed" where none holds."""

    description: str
    auc: float
    """How well a judge tells held-out chunks that activate it from others, by the name."""

    auc_low: float
    auc_high: float
    n_chunks: int
    """Held-out chunks the AUC rests on."""

    contribution_share: float
    """Of all that unknown concepts contribute to logits."""

    top_tokens: tuple[str, ...]
    example: str


@dataclass(frozen=True)
class UnknownNames:
    """All concepts that a name was sought for, by id."""

    by_id: Mapping[int, UnknownName]
    facts: Mapping[str, object]

    @property
    def named(self) -> dict[int, str]:
        """Only the names that hold, without the prefix."""
        return {
            concept: found.name for concept, found in self.by_id.items() if found.name != UNNAMED
        }

    def shown(self, concept_id: int) -> str:
        """What a reader sees: the name with its prefix, or the number."""
        name = self.named.get(concept_id)
        return f"unknown {concept_id}" if name is None else f"{DISCOVERED}{name}"


def load(folder: Path, checkpoint_digest: str) -> UnknownNames:
    """The names of a checkpoint's concepts. Raises ContractError for another checkpoint's."""
    rows = contracts.read(folder, contracts.UNKNOWN_NAMES).to_pylist()
    facts = contracts.json_file(folder, FACTS_FILE)
    if facts["checkpoint_digest"] != checkpoint_digest:
        raise contracts.ContractError(
            f"{folder} names the unknown concepts of the checkpoint "
            f"{str(facts['checkpoint_digest'])[:12]}…, but this one is {checkpoint_digest[:12]}…: "
            f"its concepts are others. {contracts.again(contracts.UNKNOWN_NAMES)}"
        )
    return UnknownNames(
        {
            row["concept_id"]: UnknownName(**{**row, "top_tokens": tuple(row["top_tokens"])})
            for row in rows
        },
        facts,
    )
