"""Names of the concepts of both heads, and a token's contributions under them.

Shape suffixes: N token of the text, in reading order   k concept kept
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from torch import Tensor

from components import contracts, unknown_names
from components.library import known_concepts
from components.unknown_names import UnknownNames
from model.attribution import ConceptAttribution
from model.directions import ConceptRef


@dataclass(frozen=True)
class Names:
    """What a reader sees of a concept: its name in the library, or the one it was found to have."""

    known: Sequence[str]
    unknown: UnknownNames

    def of(self, concept: ConceptRef) -> str:
        """An unknown concept without a name is told by its number."""
        if concept.kind == "known":
            return self.known[concept.id]
        return self.unknown.shown(concept.id)

    def contributions(
        self, found: ConceptAttribution, row: int, top: int
    ) -> list[tuple[str, str, float]]:
        """Ref, name and logits of one token's parts: the strongest of each kind, then the rest."""
        known = self._listed("known", found.known_ids_Nk[row], found.known_Nk[row], top)
        unknown = self._listed("unknown", found.unknown_ids_Nk[row], found.unknown_Nk[row], top)
        known_rest = float(found.known_N[row]) - sum(weight for _, _, weight in known)
        # Of û as a whole: were its concepts not what it is made of, the rest would show it.
        unknown_rest = float(found.unknown_N[row]) - sum(weight for _, _, weight in unknown)
        return [
            *known,
            ("known:rest", "the other known concepts", known_rest),
            *unknown,
            ("unknown:rest", "the other unknown concepts", unknown_rest),
            ("residual", "residual", float(found.residual_N[row])),
        ]

    def _listed(
        self, kind: Literal["known", "unknown"], ids_k: Tensor, weight_k: Tensor, top: int
    ) -> list[tuple[str, str, float]]:
        first_k = weight_k.abs().argsort(descending=True, stable=True)[:top]
        return [
            (f"{kind}:{concept}", self.of(ConceptRef(kind, concept)), weight)
            for concept, weight in zip(
                ids_k[first_k].tolist(), weight_k[first_k].tolist(), strict=True
            )
        ]


def names_of(checkpoint: Path, names: Path) -> Names:
    """Names of a checkpoint's concepts. Raises ContractError for names of another one."""
    digest = contracts.verify(checkpoint, contracts.CHECKPOINT).digest
    known = [concept.name for concept in known_concepts(checkpoint)]
    return Names(known, unknown_names.load(names, digest))
