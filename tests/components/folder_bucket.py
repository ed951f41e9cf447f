"""S3 without a service: the objects are files of a folder, and what is asked for is counted."""

from pathlib import Path

from components.manifests import digest_of
from components.ranged import Head
from components.retries import StorageError
from components.storage import StorageConfig


class FolderBucket:
    """As `components.store.S3Bucket`: bucket `name` is the folder `root / name`."""

    root: Path
    """Set by the test."""

    def __init__(self, bucket: str, storage: StorageConfig) -> None:
        self.folder, self.is_closed = self.root / bucket, False
        self.read: list[tuple[str, int, int]] = []
        """Key, first byte and number of bytes of every request."""

    def __str__(self) -> str:
        return f"s3://{self.folder.name}"

    def close(self) -> None:
        """See Transport."""
        self.is_closed = True

    def head(self, key: str) -> Head:
        """See Transport."""
        path = self.folder / key
        if not path.is_file():
            raise StorageError(f"{self}/{key}: there is no such object")
        found = digest_of(path)
        return Head(found.bytes, found.sha256[:8], found.sha256)

    def get(self, key: str, start: int, n_bytes: int, etag: str) -> bytes:
        """See Transport."""
        assert not self.is_closed, f"{key} was asked for after the bucket was closed"
        self.read.append((key, start, n_bytes))
        return (self.folder / key).read_bytes()[start : start + n_bytes]
