"""Atlas, stage three: label every chunk of a corpus of any size (paper §4).

    rows.parquet, rows-000001.parquet, …    labels in chunk order, a part for each shard of chunks
    labels.json                             digests of library and annotator, number of chunks

A shard is a stretch of chunks. Its part is written into the stage's scratch folder and its digest
beside it, so that a killed run goes on with the shards that were not finished. Which engine works
on them, and how many at once, changes no byte.

Shape suffixes: N chunks   D vector width
"""

import json
import os
import shutil
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from components import annotators, contracts, embedding, engines, parts
from components.annotators import Annotator, Floats
from components.atlas.labelling_config import AnnotateConfig
from components.atlas.vectors import ENCODER_FILE, VECTORS_FILE
from components.chunks import ChunkTexts
from components.embedding import Embedder
from components.engine_config import EngineConfig
from components.manifests import digest_of
from model.events import Event, Events, ignore

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
    with ExitStack() as stack:
        if scratch is None:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder = scratch / "shards"
        folder.mkdir(exist_ok=True)
        shards = _Shards(documents, chunks, vectors, annotator, folder, n_chunks, config)
        _require_same_encoder(vectors, annotator)
        _work(shards, config.engine, events)
        n_labels = sum(shards.n_labels(shard) for shard in range(shards.n))
        for shard in range(shards.n):
            _put(shards.part(shard), labels / parts.name_of(shard))
    written = {
        "library_digest": facts["library_digest"],
        "annotator_digest": contracts.manifest_of(annotator).digest,
        "n_chunks": n_chunks,
    }
    (labels / FACTS_FILE).write_text(json.dumps(written, indent=1))
    contracts.seal(labels, contracts.LABELS, rows=n_labels)
    return n_labels


def _work(shards: "_Shards", engine: EngineConfig, events: Events) -> None:
    """Write every part that is not there yet; tells of chunks a second, what is left, the cost."""
    left = [shard for shard in range(shards.n) if not shards.is_done(shard)]
    before = shards.n_chunks - sum(shards.length(shard) for shard in left)
    if before and left:
        events(Event(before, shards.n_chunks, message=_goes_on(shards, left, before)))
    began, done = time.monotonic(), before
    for shard in engines.work(shards, left, engine):
        done += shards.length(shard)
        seconds = time.monotonic() - began
        rate = (done - before) / max(seconds, 1e-9)
        told = {"chunks_per_second": rate, "eta_seconds": (shards.n_chunks - done) / rate}
        if engine.price_per_hour:
            spent = engine.price_per_hour * engine.n_workers * seconds / 3_600
            told["cost"] = spent
            told["cost_at_end"] = spent * (shards.n_chunks - before) / (done - before)
        events(Event(done, shards.n_chunks, told))


def _goes_on(shards: "_Shards", left: list[int], before: int) -> str:
    return (
        f"goes on with {len(left)} of {shards.n} shards; {before:,} of {shards.n_chunks:,} chunks "
        f"were labelled before"
    )


@dataclass(frozen=True)
class _Shards:
    """The parts of one table of labels. Travels to workers, which open their inputs there."""

    documents: Path
    chunks: Path
    vectors: Path
    annotator: Path
    folder: Path
    n_chunks: int
    config: AnnotateConfig

    @property
    def n(self) -> int:
        """Shards; a corpus without chunks has one, empty."""
        return max(1, -(-self.n_chunks // self.config.shard_chunks))

    def length(self, shard: int) -> int:
        """Chunks of a shard."""
        return min(self.config.shard_chunks, self.n_chunks - shard * self.config.shard_chunks)

    def part(self, shard: int) -> Path:
        """Where the labels of a shard lie."""
        return self.folder / parts.name_of(shard)

    def is_done(self, shard: int) -> bool:
        """Whether a shard's part is there, as it was finished."""
        facts, part = self._facts(shard), self.part(shard)
        if not facts.is_file() or not part.is_file():
            return False
        return bool(json.loads(facts.read_text())["sha256"] == digest_of(part).sha256)

    def n_labels(self, shard: int) -> int:
        """Labels of a shard that is done."""
        return int(json.loads(self._facts(shard).read_text())["n_labels"])

    def __call__(self, shard: int) -> int:
        """Label the chunks of a shard and write its part; returns its number."""
        part = self.part(shard)
        with tempfile.TemporaryDirectory(dir=self.folder) as private:
            written = Path(private) / part.name
            n_labels = self._write(shard, written)
            facts = {"sha256": digest_of(written).sha256, "n_labels": n_labels}
            told = written.with_suffix(".json")
            told.write_text(json.dumps(facts))
            # Facts last: without them, or with another digest, the part is written again.
            written.replace(part)
            told.replace(self._facts(shard))
        return shard

    def _facts(self, shard: int) -> Path:
        return self.part(shard).with_suffix(".json")

    def _write(self, shard: int, path: Path) -> int:
        """Batches begin at the same chunks however long shards are."""
        source, schema, n_labels = _open(self), contracts.LABELS.schema, 0
        first = shard * self.config.shard_chunks
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
        return n_labels


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
