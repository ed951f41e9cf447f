"""A frozen library of concepts: as a folder, and as a checkpoint carries it (paper §4).

    freeze            Concepts@1 out of rows and centroids, under one digest of both
    open_library      the library, after its seal and its digest were checked
    known_concepts    what a checkpoint remembers of the library it was trained with

The digest covers every row and every centroid, so it names the library wherever a label, an
annotator or a checkpoint refers to it, and an edited library is noticed even if it was sealed
again.

Shape suffixes: K concepts   D width of a vector
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from components import contracts

LIBRARY_FILE = "library.json"
CENTROIDS_FILE = "centroids.npy"
_ROWS_AT_A_TIME = 4096


@dataclass(frozen=True)
class Concept:
    """One concept of a library, as Concepts@1 has it."""

    concept_id: int
    name: str
    description: str
    kind: str
    parent: str
    """Branch of the fixed top level."""

    taxonomy: str
    """Path from the top level: "parent / name"."""

    prevalence: float
    """Share of the tagged chunks."""

    n_chunks: int
    coherence: float
    """Mean cosine of its tags to their centroid, weighted by the chunks that carry them."""

    members: tuple[str, ...]
    """Tags it stands for, the commonest first."""


@dataclass(frozen=True)
class Library:
    """A frozen library. `concepts[i].concept_id == i`, and row i of the centroids is its vector."""

    concepts: tuple[Concept, ...]
    centroids_KD: NDArray[np.float32]
    digest: str
    facts: Mapping[str, object]
    """All of `library.json`: encoder, coherence by k, history."""

    def named(self, name: str) -> Concept | None:
        """The concept of this name, whatever its case; None where there is none."""
        wanted = name.strip().casefold()
        return next((each for each in self.concepts if each.name.casefold() == wanted), None)


@dataclass(frozen=True)
class KnownConcept:
    """One concept of the library a network was trained with."""

    concept_id: int
    name: str
    description: str
    prevalence: float


def freeze(
    rows: Sequence[Mapping[str, object]],
    centroids_KD: NDArray[np.float32],
    facts: Mapping[str, object],
    folder: Path,
) -> int:
    """Write Concepts@1 with its digest beside `facts`. Returns the number of concepts."""
    assert len(rows) == len(centroids_KD), f"{len(rows)} concepts, {len(centroids_KD)} centroids"
    table = pa.Table.from_pylist(list(rows), schema=contracts.CONCEPTS.schema)
    centroids_KD = np.ascontiguousarray(centroids_KD, dtype=np.float32)
    np.save(folder / CENTROIDS_FILE, centroids_KD)
    library = {"digest": _digest(table, centroids_KD), **facts}
    (folder / LIBRARY_FILE).write_text(json.dumps(library, indent=1))
    return contracts.write_batches([table], folder, contracts.CONCEPTS)


def open_library(folder: Path) -> Library:
    """The library of a folder. Raises ContractError unless rows and centroids are as frozen."""
    table = contracts.read(folder, contracts.CONCEPTS)
    facts = contracts.json_file(folder, LIBRARY_FILE)
    centroids_KD = np.load(folder / CENTROIDS_FILE)
    found, frozen = _digest(table, centroids_KD), facts.get("digest")
    if found != frozen:
        raise contracts.ContractError(
            f"{folder} was edited after it was frozen: its rows and centroids have digest {found}, "
            f"{LIBRARY_FILE} says {frozen}. {contracts.again(contracts.CONCEPTS)}"
        )
    concepts = tuple(
        Concept(**{**row, "members": tuple(row["members"])}) for row in table.to_pylist()
    )
    misplaced = [each.concept_id for at, each in enumerate(concepts) if each.concept_id != at]
    if misplaced or len(concepts) != len(centroids_KD):
        raise contracts.ContractError(
            f"{folder} has {len(concepts)} concepts and {len(centroids_KD)} centroids, and ids "
            f"{misplaced[:3]} out of order; ids are 0 to {len(concepts) - 1}. "
            f"{contracts.again(contracts.CONCEPTS)}"
        )
    return Library(concepts, centroids_KD, found, facts)


def known_concepts(checkpoint: Path) -> list[KnownConcept]:
    """Concepts by id, 0 … n − 1, as the checkpoint stores them."""
    listed = json.loads((checkpoint / "concepts.json").read_text())["concepts"]
    return [
        KnownConcept(row["concept_id"], row["name"], row["description"], row["prevalence"])
        for row in listed
    ]


def _digest(table: pa.Table, centroids_KD: NDArray[np.float32]) -> str:
    """SHA-256 of rows and centroids as they are stored: prevalence and coherence as float32."""
    schema = contracts.CONCEPTS.schema
    assert schema is not None, "Concepts@1 has a table"
    digest = hashlib.sha256()
    for batch in table.select(schema.names).to_batches(max_chunksize=_ROWS_AT_A_TIME):
        for row in batch.to_pylist():
            digest.update(json.dumps(row, sort_keys=True).encode() + b"\n")
    digest.update(str(centroids_KD.shape).encode())
    digest.update(np.ascontiguousarray(centroids_KD, dtype=np.float32).tobytes())
    return digest.hexdigest()
