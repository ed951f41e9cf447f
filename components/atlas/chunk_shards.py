"""Work on every chunk of a corpus of any size, in shards that a killed run keeps.

A shard is a stretch of chunks. Its file is written into the stage's scratch folder and its digest
beside it, so that a killed run goes on with the shards that were not finished. Which engine works
on them, and how many at once, changes no byte.
"""

import json
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from components import contracts, engines
from components.engine_config import EngineConfig
from components.manifests import digest_of
from model.events import Event, Events


@dataclass(frozen=True)
class ChunkShards(ABC):
    """The shards of one corpus. Travels to workers, which open their inputs there."""

    folder: Path
    n_chunks: int
    shard_chunks: int

    @abstractmethod
    def file(self, shard: int) -> Path:
        """Where what is written of a shard lies, in `folder`."""

    @abstractmethod
    def write(self, shard: int, path: Path) -> Mapping[str, object]:
        """Write a shard's file as `path`. Returns what is kept beside it."""

    @property
    def n(self) -> int:
        """Shards; a corpus without chunks has one, empty."""
        return max(1, -(-self.n_chunks // self.shard_chunks))

    def first(self, shard: int) -> int:
        """The chunk a shard begins at."""
        return shard * self.shard_chunks

    def length(self, shard: int) -> int:
        """Chunks of a shard."""
        return min(self.shard_chunks, self.n_chunks - self.first(shard))

    def facts(self, shard: int) -> Mapping[str, object]:
        """What is kept beside a shard's file; empty where it was not finished."""
        path = self.file(shard).with_suffix(".json")
        return contracts.json_file(path.parent, path.name) if path.is_file() else {}

    def is_done(self, shard: int) -> bool:
        """Whether a shard's file is there, as it was finished."""
        facts, file = self.facts(shard), self.file(shard)
        return bool(facts) and file.is_file() and facts["sha256"] == digest_of(file).sha256

    def __call__(self, shard: int) -> int:
        """Write a shard's file; returns its number."""
        file = self.file(shard)
        with tempfile.TemporaryDirectory(dir=self.folder) as private:
            written = Path(private) / file.name
            kept = self.write(shard, written)
            told = written.with_suffix(".json")
            told.write_text(json.dumps({"sha256": digest_of(written).sha256, **kept}))
            # Facts last: without them, or with another digest, the file is written again.
            written.replace(file)
            told.replace(file.with_suffix(".json"))
        return shard


@contextmanager
def folder_in(scratch: Path | None) -> Iterator[Path]:
    """Where shards are kept: below `scratch`, or nowhere for longer than the block."""
    with ExitStack() as stack:
        if scratch is None:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder = scratch / "shards"
        folder.mkdir(exist_ok=True)
        yield folder


def work(shards: ChunkShards, engine: EngineConfig, events: Events, done_to: str) -> None:
    """Write every file that is not there yet; tells of chunks a second and the cost.

    `done_to` is what is done to chunks, as in "so many were labelled before".
    """
    left = [shard for shard in range(shards.n) if not shards.is_done(shard)]
    before = shards.n_chunks - sum(shards.length(shard) for shard in left)
    if before and left:
        message = (
            f"goes on with {len(left)} of {shards.n} shards; {before:,} of {shards.n_chunks:,} "
            f"chunks were {done_to} before"
        )
        events(Event(before, shards.n_chunks, message=message))
    began, done = time.monotonic(), before
    for shard in engines.work(shards, left, engine):
        done += shards.length(shard)
        seconds = time.monotonic() - began
        rate = (done - before) / max(seconds, 1e-9)
        told = {"chunks_per_second": rate}
        if rate and engine.price_per_hour:
            spent = engine.price_per_hour * engine.n_workers * seconds / 3_600
            told["cost"] = spent
            told["cost_at_end"] = spent * (shards.n_chunks - before) / (done - before)
        events(Event(done, shards.n_chunks, told))
