"""Labels by chunk: the concepts of the highest score, best first."""

from pathlib import Path

import numpy as np

from components import contracts
from components.library import open_library


class ChunkLabels:
    """The labels of all chunks. A chunk without any is unlabelled, not free of concepts."""

    def __init__(self, labels: Path, concepts: Path, n_chunks: int, max_concepts: int) -> None:
        table = contracts.read(labels, contracts.LABELS)
        library = open_library(concepts)
        _refuse_another_library(labels, concepts, library.digest)
        chunk_N = table.column("chunk_id").to_numpy()
        concept_N = table.column("concept_id").to_numpy()
        score_N = table.column("score").to_numpy()
        known = np.arange(len(library.concepts))
        _refuse_strangers("concept", np.setdiff1d(concept_N, known), labels, concepts)
        beyond = chunk_N[(chunk_N < 0) | (chunk_N >= n_chunks)]
        _refuse_strangers("chunk", np.unique(beyond), labels, concepts)
        best_first = np.lexsort((concept_N, -score_N, chunk_N))
        self._concepts = concept_N[best_first]
        self._starts = np.searchsorted(chunk_N[best_first], np.arange(n_chunks + 1))
        self._max_concepts = max_concepts

    def of(self, chunk_id: int) -> list[int]:
        """Concept ids of a chunk, at most `max_concepts`."""
        start, end = self._starts[chunk_id], self._starts[chunk_id + 1]
        found: list[int] = self._concepts[start : min(end, start + self._max_concepts)].tolist()
        return found


def _refuse_another_library(labels: Path, concepts: Path, library: str) -> None:
    made_with = contracts.json_file(labels, "labels.json")["library_digest"]
    if made_with != library:
        raise contracts.ContractError(
            f"{labels} was labelled with library {str(made_with)[:12]}…, but {concepts} is "
            f"{library[:12]}…: its ids mean other concepts. Run `clearstory rerun --from "
            f"learn`."
        )


def _refuse_strangers(noun: str, strangers: np.ndarray, labels: Path, concepts: Path) -> None:
    if len(strangers):
        raise contracts.ContractError(
            f"{labels} labels with {noun} ids {strangers[:5].tolist()} ({len(strangers)} in all), "
            f"which do not exist. Were the labels made with another library than {concepts}, or "
            f"from other chunks? Run `clearstory rerun --from annotate`."
        )
