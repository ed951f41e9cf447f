"""Atlas, stage three: label every chunk of a corpus of any size (paper §4).

    rows.parquet, rows-000001.parquet, …    labels in chunk order, a part for each shard of chunks
    labels.json                             digests of library and annotator, number of chunks

A killed run goes on with the parts that were not finished (components/atlas/chunk_shards.py).

Shape suffixes: N chunks   D vector width
"""

import json
import os
import shutil
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from components import annotators, contracts, embedding, parts
from components.annotators import Annotator, Floats
from components.atlas import chunk_shards
from components.atlas.chunk_shards import ChunkShards
from components.atlas.labelling_config import AnnotateConfig
from components.atlas.vectors import ENCODER_FILE, VECTORS_FILE
from components.chunks import ChunkTexts
from components.embedding import Embedder
from model.events import Events, ignore

FACTS_FILE = "labels.json"


def annotate(
    documents: Path,
    chunks: Path,
    vectors: Path,
    annotator: Path,
    labels: Path,
    config: AnnotateConfig,
    events: Events = ignore,
    scratch: Path | None = None,
) -> int:
    """Label every chunk. Returns the number of labels written; rows come in chunk order.

    Vectors are read where the annotator's encoder made them, else it encodes the texts itself.
    Goes on from the shards in `scratch`, if a killed attempt left some there.
    """
    facts = contracts.json_file(annotator, annotators.FACTS_FILE)
    n_chunks = contracts.verify(chunks, contracts.CHUNKS).rows
    _require_same_encoder(vectors, annotator)
    with chunk_shards.folder_in(scratch) as folder:
        shards = _Shards(
            folder, n_chunks, config.shard_chunks, documents, chunks, vectors, annotator, config
        )
        chunk_shards.work(shards, config.engine, events, "labelled")
        n_labels = sum(shards.n_labels(shard) for shard in range(shards.n))
        for shard in range(shards.n):
            _put(shards.file(shard), labels / parts.name_of(shard))
    written = {
        "library_digest": facts["library_digest"],
        "annotator_digest": contracts.manifest_of(annotator).digest,
        "n_chunks": n_chunks,
    }
    (labels / FACTS_FILE).write_text(json.dumps(written, indent=1))
    contracts.seal(labels, contracts.LABELS, rows=n_labels)
    return n_labels


@dataclass(frozen=True)
class _Shards(ChunkShards):
    """The parts of one table of labels."""

    documents: Path
    chunks: Path
    vectors: Path
    annotator: Path
    config: AnnotateConfig

    def file(self, shard: int) -> Path:
        """See ChunkShards."""
        return self.folder / parts.name_of(shard)

    def n_labels(self, shard: int) -> int:
        """Labels of a shard that is done."""
        return int(str(self.facts(shard)["n_labels"]))

    def write(self, shard: int, path: Path) -> dict[str, int]:
        """Batches begin at the same chunks however long shards are."""
        source, schema, n_labels = _open(self), contracts.LABELS.schema, 0
        first = self.first(shard)
        with (
            threadpool_limits(1),
            pq.ParquetWriter(path, schema, compression="zstd") as writer,
        ):
            for start in range(first, first + self.length(shard), self.config.batch_chunks):
                end = min(start + self.config.batch_chunks, self.n_chunks)
                found = source.annotator.find(source.vectors(start, end))
                columns = [found.row_L + start, found.concept_L.astype(np.int32), found.score_L]
                writer.write_table(pa.table(columns, schema=schema))
                n_labels += len(found.row_L)
        return {"n_labels": n_labels}


@dataclass(frozen=True)
class _Source:
    """An annotator, and the vectors of chunks that it takes."""

    annotator: Annotator
    stored_ND: NDArray[np.float16]
    texts: ChunkTexts

    def vectors(self, start: int, end: int) -> Floats:
        """Unit vectors of chunks start … end − 1, by the annotator's encoder."""
        if isinstance(self.annotator.encoder, str):
            return np.asarray(self.stored_ND[start:end], dtype=np.float32)
        return self._encoder.embed(self.texts.between(start, end))

    @cached_property
    def _encoder(self) -> Embedder:
        return embedding.load(str(self.annotator.encoder), n_workers=1)


@lru_cache(maxsize=1)
def _open(shards: _Shards) -> _Source:
    """What a worker reads, opened once a process."""
    return _Source(
        annotators.load(shards.annotator),
        np.load(shards.vectors / VECTORS_FILE, mmap_mode="r"),
        ChunkTexts(shards.documents, shards.chunks),
    )


def _require_same_encoder(vectors: Path, annotator: Path) -> None:
    """Raise ContractError unless vectors are there of the encoder an annotator learned from."""
    contracts.verify(vectors, contracts.VECTORS)
    made_by = contracts.json_file(vectors, ENCODER_FILE)["digest"]
    learned_from = contracts.json_file(annotator, annotators.FACTS_FILE)["encoder_digest"]
    if isinstance(annotators.load(annotator).encoder, str) and made_by != learned_from:
        raise contracts.ContractError(
            f"{annotator} was trained on vectors of encoder {str(learned_from)[:12]}…, but "
            f"{vectors} holds those of {str(made_by)[:12]}…. Run `clearstory rerun --from learn`."
        )


def _put(part: Path, path: Path) -> None:
    """Another name for a part: the one in the scratch folder stays until the stage is committed."""
    try:
        os.link(part, path)
    except OSError:  # another file system, or one without links
        shutil.copyfile(part, path)
