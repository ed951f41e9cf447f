"""Training chunks similar to a text, or to what a network represents: Index@1 (paper §6.1.3).

    find        mean state of a chunk's tokens  ->  transducer  ->  FAISS  ->  sources
    find_text   a text  ->  the chunk encoder   ->                  FAISS  ->  sources

Similarity of meaning, in the chunk encoder's eyes: provenance for an audit, no claim of influence.

Shape suffixes: Q queries   D width of a state   E width of a vector   K rows found
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from pydantic import ValidationError
from torch import Tensor

from components import contracts, embedding, manifests, nearest_lists
from components.contracts import ContractError
from components.embedding import Embedder
from components.index_facts import EncoderFacts, IndexFacts, Spread
from components.manifests import digest_of
from components.nearest import CorruptIndexError, Floats, VectorIndex
from model import transducer as transducers
from model.transducer import Transducer

FACTS_FILE, TRANSDUCER_FILE = "index.json", "transducer.safetensors"
_READ_WHOLE_BYTES = 2**30
"""Files above are compared by size alone when an index is opened: they are mapped, not read."""


@dataclass(frozen=True)
class Place:
    """Where a text stands: characters of a document, half-open."""

    chunk_id: int
    doc_id: str
    start: int
    end: int


@dataclass(frozen=True)
class Source:
    """A training chunk that was found, and where it stands."""

    chunk_id: int
    doc_id: str
    source: str
    domain: str
    licence: str
    title: str
    text: str
    start: int
    end: int
    """Characters of the document, half-open."""

    n_places: int
    places: tuple[Place, ...]
    """Everywhere this text stands in the training split, this place first."""

    cosine: float
    percentile: float
    """Share of random pairs that are less alike, in [0, 1]: what the cosine means here."""


@dataclass(frozen=True)
class Retriever:
    """An opened index, its transducer and the table of its rows."""

    index: VectorIndex
    transducer: Transducer
    rows: pa.Table
    facts: IndexFacts
    """What was measured when it was built."""

    def find(self, state_QD: Tensor, k: int) -> list[list[Source]]:
        """The k most similar chunks of each mean state; a text that occurs twice is one."""
        wanted = self.transducer.into.in_features
        if state_QD.ndim != 2 or state_QD.shape[1] != wanted:
            raise ValueError(
                f"states have shape {tuple(state_QD.shape)}, but the index's transducer reads "
                f"rows of {wanted}; give mean states of the checkpoint it was built for"
            )
        with torch.no_grad():
            vector_QE = self.transducer(state_QD).numpy()
        return self._sources(vector_QE, k, self.facts.random_states)

    def find_text(self, texts: Sequence[str], k: int) -> list[list[Source]]:
        """The k most similar chunks of each text, by the encoder the index was built with."""
        return self._sources(self.encoder.embed(texts), k, self.facts.random_texts)

    @cached_property
    def encoder(self) -> Embedder:
        """Loaded when a text is first asked for. Refuses one that is not the index's own."""
        return encoder_of(self.facts.encoder)

    def _sources(self, vector_QE: Floats, k: int, random: Spread) -> list[list[Source]]:
        if k < 1:
            raise ValueError(f"k is {k}; ask for at least one source")
        found = self.index.search(vector_QE, min(self.index.n, k))
        return [
            [
                self._source(row, cosine, random)
                for row, cosine in zip(rows, cosines, strict=True)
                if row >= 0
            ]
            for rows, cosines in zip(found.rows_QK.tolist(), found.cosine_QK.tolist(), strict=True)
        ]

    def _source(self, row: int, cosine: float, random: Spread) -> Source:
        (found,) = self.rows.slice(row, 1).to_pylist()
        return Source(
            chunk_id=found["chunk_id"],
            doc_id=found["doc_id"],
            source=found["source"],
            domain=found["domain"],
            licence=found["licence"],
            title=found["title"],
            text=found["text"],
            start=found["start"],
            end=found["end"],
            n_places=found["n_places"],
            places=tuple(Place(**place) for place in found["places"]),
            cosine=cosine,
            percentile=random.share_below(cosine),
        )


def encoder_of(wanted: EncoderFacts) -> Embedder:
    """The encoder of an index. Refuses one of that name with other weights."""
    encoder = embedding.load(wanted.name)
    if encoder.digest != wanted.digest:
        raise ContractError(
            f"the encoder {wanted.name} is {encoder.digest[:12]}… here, but the index holds "
            f"vectors of {wanted.digest[:12]}…: they cannot be compared. Install the encoder "
            f"of that digest, or run `clearstory rerun --from {contracts.VECTORS.written_by}`."
        )
    return encoder


def open_index(index: Path, checkpoint: Path) -> Retriever:
    """Open an index for a checkpoint. Refuses one that was built for another, and broken files."""
    verify(index)
    facts = facts_of(index)
    digest = contracts.verify(checkpoint, contracts.CHECKPOINT).digest
    if facts.checkpoint_digest != digest:
        raise ContractError(
            f"{index} was built for the checkpoint {facts.checkpoint_digest[:12]}…, but "
            f"{checkpoint} is {digest[:12]}…: its transducer does not know these states. "
            f"{contracts.again(contracts.INDEX)}"
        )
    transducer_digest = digest_of(index / TRANSDUCER_FILE).sha256
    if facts.transducer_digest != transducer_digest:
        raise ContractError(
            f"{index} was measured with the transducer {facts.transducer_digest[:12]}…, but holds "
            f"{transducer_digest[:12]}…. {contracts.again(contracts.INDEX)}"
        )
    try:
        table = nearest_lists.open_index(index, facts.kind, facts.search.n_candidates)
    except CorruptIndexError as error:
        raise ContractError(f"{error}. {contracts.again(contracts.INDEX)}") from error
    rows = pq.read_table(index / contracts.ROWS_FILE, memory_map=True)
    if not table.n == rows.num_rows == facts.n:
        raise ContractError(
            f"{index} has {table.n} vectors, {rows.num_rows} rows and facts of {facts.n}. "
            f"{contracts.again(contracts.INDEX)}"
        )
    return Retriever(table, transducers.load(index / TRANSDUCER_FILE), rows, facts)


def verify(index: Path) -> None:
    """Raise ContractError unless an index is as it was sealed; large files by their size."""
    manifest = contracts.manifest_of(index)
    contracts.check_kind(manifest, contracts.INDEX, str(index))
    contracts.check_whole(manifest, contracts.INDEX, str(index))
    again = contracts.again(contracts.INDEX)
    for name, expected in manifest.files.items():
        path = index / name
        n_bytes = path.stat().st_size if path.is_file() else 0
        manifests.check_size(str(path), n_bytes, expected, again)
        if expected.bytes <= _READ_WHOLE_BYTES:
            manifests.check_digest(str(path), digest_of(path), expected, again)


def facts_of(index: Path) -> IndexFacts:
    """What was measured of an index."""
    try:
        return IndexFacts.model_validate_json((index / FACTS_FILE).read_bytes())
    except ValidationError as error:
        raise ContractError(
            f"{index / FACTS_FILE} does not say what this code needs to know ({error}). "
            f"{contracts.again(contracts.INDEX)}"
        ) from error
