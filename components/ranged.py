"""Files of an artifact read by ranges: in a folder here, or below a prefix in S3.

    place.read([Range("stream.npy", 128, 512), …])      the bytes of each range, in this order
    place.local("tokenizer.json")                       the whole file on this machine
    place.n_bytes(name), place.digest(name)             what verification compares

S3 itself is behind `Transport` (`components.store` has the one that speaks to a service): one try
of a request, which raises `InterruptedTransferError` if another may help and `StorageError` if not.
"""

import hashlib
import mmap
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from components.manifests import FileDigest, digest_of
from components.retries import InterruptedTransferError, StorageError, tried
from components.storage import StorageConfig

_OPEN_FILES = 256
_DIGEST_BYTES = 8 << 20


@dataclass(frozen=True)
class Range:
    """`n_bytes` of a file from `start` on."""

    file: str
    start: int
    n_bytes: int

    @property
    def end(self) -> int:
        """First byte after the range."""
        return self.start + self.n_bytes


class Place(Protocol):
    """Where the files of one artifact lie."""

    def read(self, ranges: Sequence[Range]) -> list[bytes]:
        """The bytes of each range. Raises StorageError where a file is shorter."""
        ...

    def local(self, name: str) -> Path:
        """The whole file on this machine, unverified."""
        ...

    def n_bytes(self, name: str) -> int:
        """Size of a file."""
        ...

    def digest(self, name: str) -> FileDigest:
        """Size and SHA-256 of a file as it lies there now."""
        ...

    def close(self) -> None:
        """Let go of threads, connections and open files."""
        ...


class FolderPlace:
    """A folder on this machine; files are mapped, the most recent ones stay so."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._mapped: OrderedDict[str, mmap.mmap] = OrderedDict()

    def __str__(self) -> str:
        return str(self.folder)

    def read(self, ranges: Sequence[Range]) -> list[bytes]:
        """See Place."""
        found = []
        for wanted in ranges:
            content = self._map(wanted.file)[wanted.start : wanted.end]
            if len(content) < wanted.n_bytes:
                raise _cut_short(f"{self.folder / wanted.file}", wanted, len(content))
            found.append(content)
        return found

    def close(self) -> None:
        """See Place."""
        self._mapped.clear()

    def local(self, name: str) -> Path:
        """See Place."""
        return self.folder / name

    def n_bytes(self, name: str) -> int:
        """See Place."""
        try:
            return (self.folder / name).stat().st_size
        except FileNotFoundError:
            raise StorageError(f"{self.folder / name} is gone; make the artifact again") from None

    def digest(self, name: str) -> FileDigest:
        """See Place."""
        return digest_of(self.folder / name)

    def _map(self, name: str) -> mmap.mmap:
        if name in self._mapped:
            self._mapped.move_to_end(name)
            return self._mapped[name]
        self.n_bytes(name)
        with (self.folder / name).open("rb") as handle:
            self._mapped[name] = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
        if len(self._mapped) > _OPEN_FILES:
            self._mapped.popitem(last=False)
        return self._mapped[name]


@dataclass(frozen=True)
class Head:
    """What a store says of an object without sending it."""

    n_bytes: int
    etag: str
    sha256: str
    """Of the whole object, by the store itself; empty where it kept none."""


class Transport(Protocol):
    """One try of a request to one bucket. Raises InterruptedTransferError or StorageError."""

    def close(self) -> None:
        """Let connections go."""
        ...

    def head(self, key: str) -> Head:
        """Facts of an object."""
        ...

    def get(self, key: str, start: int, n_bytes: int, etag: str) -> bytes:
        """A range of an object that still has this ETag, perhaps cut short."""
        ...


class S3Place:
    """A prefix in S3. Every read is of the object that the first look at it found."""

    def __init__(
        self,
        transport: Transport,
        prefix: str,
        cache: Path,
        config: StorageConfig,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.prefix = prefix.rstrip("/")
        self._transport, self._cache, self._config, self._sleep = transport, cache, config, sleep
        self._heads: dict[str, Head] = {}
        self._pool = ThreadPoolExecutor(config.parallel_reads, thread_name_prefix="ranges")

    def __str__(self) -> str:
        return f"{self._transport}/{self.prefix}"

    def close(self) -> None:
        """See Place."""
        self._pool.shutdown()
        self._transport.close()

    def read(self, ranges: Sequence[Range]) -> list[bytes]:
        """See Place. Near ranges of one object become one request; requests run side by side."""
        requests = coalesced(ranges, self._config.coalesce_bytes)
        bodies = list(self._pool.map(self._get, requests))
        found = [b""] * len(ranges)
        for request, body in zip(requests, bodies, strict=True):
            for i, wanted in enumerate(ranges):
                if _inside(wanted, request):
                    first = wanted.start - request.start
                    found[i] = body[first : first + wanted.n_bytes]
        return found

    def local(self, name: str) -> Path:
        """See Place. Fetched once for each version of the object."""
        head = self._head(name)
        version = hashlib.sha256(f"{self}/{name}#{head.etag}".encode()).hexdigest()[:20]
        path = self._cache / version / Path(name).name
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(f".{os.getpid()}.partial")  # ranks fetch side by side
            with partial.open("wb") as out:
                for part in self._parts(name):
                    out.write(part)
            partial.rename(path)
        return path

    def n_bytes(self, name: str) -> int:
        """See Place."""
        return self._head(name).n_bytes

    def digest(self, name: str) -> FileDigest:
        """See Place. The store's own SHA-256 where it kept one, else of all the bytes."""
        head = self._head(name)
        if head.sha256:
            return FileDigest(bytes=head.n_bytes, sha256=head.sha256)
        digest = hashlib.sha256()
        for part in self._parts(name):
            digest.update(part)
        return FileDigest(bytes=head.n_bytes, sha256=digest.hexdigest())

    def _parts(self, name: str) -> list[bytes]:
        end = self._head(name).n_bytes
        starts = range(0, end, _DIGEST_BYTES)
        return [self._get(Range(name, at, min(_DIGEST_BYTES, end - at))) for at in starts]

    def _head(self, name: str) -> Head:
        if name not in self._heads:
            self._heads[name] = tried(
                lambda: self._transport.head(self._key(name)), self._config, self._sleep
            )
        return self._heads[name]

    def _get(self, wanted: Range) -> bytes:
        head = self._head(wanted.file)
        key = self._key(wanted.file)
        if wanted.end > head.n_bytes:
            raise _cut_short(f"{self}/{wanted.file}", wanted, max(0, head.n_bytes - wanted.start))

        def once() -> bytes:
            body = self._transport.get(key, wanted.start, wanted.n_bytes, head.etag)
            if len(body) != wanted.n_bytes:
                raise InterruptedTransferError(f"{key} sent {len(body)} of {wanted.n_bytes} bytes")
            return body

        return tried(once, self._config, self._sleep)

    def _key(self, name: str) -> str:
        return f"{self.prefix}/{name}"


def coalesced(ranges: Sequence[Range], gap_bytes: int) -> list[Range]:
    """The fewest ranges that cover all of these without bridging more than `gap_bytes`."""
    found: list[Range] = []
    for wanted in sorted(ranges, key=lambda r: (r.file, r.start)):
        last = found[-1] if found else None
        if last and last.file == wanted.file and wanted.start <= last.end + gap_bytes:
            found[-1] = Range(last.file, last.start, max(last.end, wanted.end) - last.start)
        else:
            found.append(wanted)
    return found


def _inside(inner: Range, outer: Range) -> bool:
    return inner.file == outer.file and outer.start <= inner.start and inner.end <= outer.end


def _cut_short(path: str, wanted: Range, found_bytes: int) -> StorageError:
    return StorageError(
        f"{path} has {found_bytes} bytes from byte {wanted.start} on, and {wanted.n_bytes} were "
        f"asked for: it was cut short. Make or copy it again."
    )
